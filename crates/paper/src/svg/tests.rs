use super::*;
use crate::numbers::Spread;

fn series(name: &str, count: usize) -> Series {
    let point = |n: usize| {
        Point::measured(n as f64, Spread::of(&[1.0 + n as f64, 1.5 + n as f64, 2.0]).expect("finite"))
    };
    Series::measured(name, (0..count).map(point).collect())
}

fn figure(shape: Shape, series: Vec<Series>) -> Figure {
    let (title, x, y) = ("a < b & \"c\"".into(), "threads".into(), "txn/s <medium>".into());
    Figure { title, shape, x, y, series }
}

fn model() -> Series {
    Series { origin: Origin::Model, ..series("none", 3) }
}

/// The drawing, checked as XML.
fn drawn(figure: &Figure) -> String {
    let text = draw(figure).into_string();
    roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    text
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn bars_have_a_range_and_a_published_marker_each() {
    let names = vec!["New-Order".to_owned(), "Payment".to_owned()];
    let published = Series::published("zen", &[(0.0, 0.75), (1.0, 0.8)]);
    let text = drawn(&figure(Shape::Bars(names), vec![series("zen", 2), series("steam", 2), published]));
    assert_eq!(count(&text, "class=\"range\""), 4);
    // The legend has one more of each.
    assert_eq!(count(&text, "class=\"published\""), 3);
    assert!(text.contains("url(#falling)") && text.contains("New-Order"));
    assert!(text.contains("a &lt; b &amp; &quot;c&quot;"));
}

#[test]
fn lines_have_markers_unless_they_are_of_time() {
    let shape = |markers| Shape::Lines { doubling: false, markers };
    let with_markers = drawn(&figure(shape(true), vec![series("tb-collect", 4)]));
    assert_eq!(count(&with_markers, "<circle"), 5);
    let bare = drawn(&figure(shape(false), vec![series("tb-collect", 40)]));
    assert_eq!(count(&bare, "<circle"), 0);
}

#[test]
fn a_model_is_told_from_what_was_measured() {
    let mut doubling = series("none", 4);
    doubling.points.remove(0);
    let mut model = model();
    model.points.remove(0);
    let shape = Shape::Lines { doubling: true, markers: true };
    let text = drawn(&figure(shape, vec![doubling, model]));
    assert_eq!(count(&text, "class=\"model\""), 2);
    assert!(text.contains("as a model predicts"));
}

#[test]
fn bars_that_a_model_predicts_are_drawn_and_told_from_others() {
    let names = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let text = drawn(&figure(Shape::Bars(names.clone()), vec![model()]));
    // The legend has a sample of the series, and one of models.
    assert_eq!(count(&text, "class=\"model\""), 4);
    assert_eq!(count(&text, "stroke=\"#333333\""), 4);
    assert!(text.contains("as a model predicts"));
    let measured = drawn(&figure(Shape::Bars(names), vec![series("none", 3)]));
    assert_eq!(count(&measured, "class=\"model\""), 0);
}

#[test]
fn many_positions_have_round_labels() {
    let points = (0..40).map(|n| Point::exact(1.13 + 0.05 * f64::from(n), 1.0)).collect();
    let text = drawn(&figure(
        Shape::Lines { doubling: false, markers: true },
        vec![Series::measured("zen", points)],
    ));
    assert!(text.contains(">1.5</text>") && !text.contains(">1.13</text>"), "{text}");
}

#[test]
fn a_file_of_its_own_has_its_style() {
    let text = alone(&figure(Shape::Lines { doubling: false, markers: true }, vec![series("zen", 4)]));
    roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(text.contains("svg .tick {"), "{text}");
}

#[test]
fn a_figure_without_points_can_be_drawn() {
    drawn(&figure(Shape::Bars(Vec::new()), Vec::new()));
    drawn(&figure(Shape::Lines { doubling: true, markers: true }, Vec::new()));
    drawn(&figure(Shape::Bars(vec!["a".into()]), vec![series("zen", 0)]));
}

#[test]
fn numbers_along_an_axis_do_not_run_into_each_other() {
    let positions: Vec<f64> = (0..200).map(f64::from).collect();
    let x = Scale::even((0.0, 199.0), (0.0, 600.0));
    let labelled = labelled(&positions, x);
    assert!(labelled.windows(2).all(|two| x.place(two[1]) - x.place(two[0]) >= 34.0));
    assert!(labelled.len() >= 15);
}

#[test]
fn names_that_are_too_wide_are_broken() {
    assert_eq!(broken("tb-collect-eager", 70.0), ["tb-collect-", "eager"]);
    assert_eq!(broken("tb-collect", 70.0), ["tb-collect"]);
    assert_eq!(broken("longest chain", 50.0), ["longest", "chain"]);
    assert_eq!(broken("unbreakable", 5.0), ["unbreakable"]);
}

#[test]
fn what_was_published_is_seen_where_nothing_was_measured() {
    let zen = Series::published("zen", &[(1.0, 0.75)]);
    let names = vec!["none".to_owned(), "zen".to_owned()];
    let alone = drawn(&figure(Shape::Bars(names), vec![series("none", 1), zen]));
    assert_eq!(count(&alone, "class=\"published\""), 2);
}
