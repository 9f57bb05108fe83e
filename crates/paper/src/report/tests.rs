use super::*;
use crate::claims;
use crate::engine::{Ending, Runner};
use crate::figure::{Origin, Point, Series};
use crate::measurement::{KindSummary, Measurement, Second};
use crate::results::Results;
use crate::size::Size;

struct All;

impl Runner for All {
    fn missing(&self, _: &RunSpec) -> Option<String> {
        None
    }

    fn run(&self, _: &crate::spec::Step, _: &std::sync::atomic::AtomicBool) -> Ending {
        unreachable!("reports run nothing")
    }
}

fn measurement(speed: f64) -> Measurement {
    let kind = KindSummary { per_s: speed, mean: 50.0, p95: 70.0, p99: 90.0 };
    let second =
        |n: u64| Second { seconds: 1.0, transactions: 90 + n, medium_bytes: n << 20, ..Second::default() };
    Measurement {
        txn_per_s: speed,
        kinds: ["new_order", "payment", "table_scan"].map(|name| (name.to_owned(), kind)).into(),
        bytes_written: 1e6,
        syncs: 10,
        transactions: 100,
        versions_traversed: 7,
        chain_mean: 1.5,
        chain_max: 9,
        accesses_per_tuple: 3.0,
        recovered_bytes: Some(1 << 30),
        recovery_seconds: Some(0.7),
        seconds: (0..60).map(second).collect(),
        ..Measurement::default()
    }
}

/// A report in which every run was executed three times, or none was.
fn report(made: bool, change: impl FnOnce(&mut Execution)) -> Report {
    let claims: Vec<_> = claims::all().collect();
    let plan = Plan::new(&claims, &Size::quick(2), 1.0, &All);
    let mut results = Results::default();
    for (n, step) in plan.steps.iter().enumerate().filter(|_| made) {
        for repetition in 1..=3 {
            results.add(&step.run.key(), repetition, measurement(1000.0 + (n % 7 * repetition) as f64));
        }
    }
    let mut execution = Execution { results, ..Execution::default() };
    change(&mut execution);
    let build = Build { commit: "abc1234".into(), machine: "m < n".into(), debug: false };
    let points = vec![Point::exact(1.0, 1000.0), Point::exact(128.0, 60_000.0)];
    let model = Series { name: "none".into(), origin: Origin::Model, points };
    let outlook = Outlook { claim: "TB-7b", here: vec![model], figures: Vec::new() };
    Report::new(&claims, &plan, &execution, build, &[outlook])
}

/// The drawings of a page.
fn drawings(page: &str) -> Vec<&str> {
    let starts = page.match_indices("<svg").map(|(start, _)| &page[start..]);
    starts.map(|rest| &rest[..rest.find("</svg>").expect("the drawing ends") + "</svg>".len()]).collect()
}

#[test]
fn a_full_report_is_well_formed_and_has_every_claim() {
    let page = page::to_html(&report(true, |_| ()));
    for claim in claims::all() {
        assert!(page.contains(&format!("id=\"{}\"", claim.anchor())), "{}", claim.id);
        assert!(page.contains(&format!("href=\"#{}\"", claim.anchor())), "{}", claim.id);
        assert!(page.contains(&format!("pantile paper {} --quick", claim.id)), "{}", claim.id);
    }
    let drawings = drawings(&page);
    assert!(drawings.len() > 30, "{}", drawings.len());
    for drawing in drawings {
        roxmltree::Document::parse(drawing).unwrap_or_else(|error| panic!("{error}: {drawing}"));
    }
    assert!(!page.contains("NaN") && !page.contains(">inf"));
    assert!(page.contains("m &lt; n"));
    assert!(page.contains("as a model predicts"));
    for external in ["src=", "<link", "<script", "url(h", "@import"] {
        assert!(!page.contains(external), "{external}");
    }
}

#[test]
fn the_page_says_if_runs_were_shortened() {
    // A second is too short for all runs.
    let page = page::to_html(&report(false, |_| ()));
    assert!(page.contains("Runs were shortened to 10\u{a0}% of their length to fit the time"));
    for whole in [Size::quick(2), Size::full(2)] {
        let shares: Vec<_> = whole.shorter().map(|size| shortened(&size)).collect();
        assert_eq!((shares[0], shares[2]), (None, Some(0.5)));
    }
}

#[test]
fn series_of_one_figure_do_not_look_alike() {
    for entry in report(true, |_| ()).entries {
        for figure in entry.finding.figures {
            let names: std::collections::BTreeSet<_> =
                figure.series.iter().map(|series| &series.name).collect();
            let looks: Vec<_> = names.iter().map(|name| crate::svg::style::of(name)).collect();
            for (n, look) in looks.iter().enumerate() {
                assert!(!looks[..n].contains(look), "{}, {}: {names:?}", entry.claim.id, figure.title);
            }
        }
    }
}

#[test]
fn a_report_of_nothing_says_so() {
    let page = page::to_html(&report(false, |execution| {
        execution.interrupted = true;
        execution.left_out = 12;
        execution.failed.push("pantile bench x: <broke>".into());
    }));
    assert!(page.contains("0 hold, 0 do not hold, 0 are undecided, 30 cannot be judged here"));
    assert!(page.contains("were interrupted") && page.contains("no time for 12 runs"));
    assert!(page.contains("&lt;broke&gt;"));
}

#[test]
fn what_was_published_stands_beside_ours() {
    let page = page::to_html(&report(true, |_| ()));
    assert!(page.contains("<td>0.91</td><td>+0."), "TB-7a's table has its difference");
    assert!(
        page.contains("<small class=\"there\">published 0.86</small>"),
        "TB-9's table has what was published"
    );
}

#[test]
fn the_record_has_every_claim_and_its_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let path = report(true, |_| ()).write(dir.path()).unwrap();
    assert!(path.ends_with(PAGE) && path.exists());
    let text = fs::read_to_string(dir.path().join(RECORD)).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entries = record.as_array().unwrap();
    assert_eq!(entries.len(), claims::all().count());
    let words = ["holds", "does not hold", "undecided", "cannot be judged here"];
    for entry in entries {
        for field in ["id", "title", "source", "published", "ours", "reason", "command", "unit"] {
            assert!(entry[field].is_string(), "{field} of {}", entry["id"]);
        }
        assert!(words.contains(&entry["verdict"].as_str().unwrap()));
    }
    let throughput = entries.iter().find(|entry| entry["id"] == "TB-7a").unwrap();
    assert_eq!(throughput["command"], "pantile paper TB-7a --quick --budget 1");
    assert_eq!(throughput["runs"], 18);
    assert_eq!(throughput["repetitions"], serde_json::json!([3, 3]));
    let outcomes = ["held", "refuted", "undecided"];
    for part in throughput["parts"].as_array().unwrap() {
        assert!(outcomes.contains(&part["outcome"].as_str().unwrap()) && part["found"].is_string());
    }
    // Everything is as fast as everything else here, without the cause as well.
    let updates = entries.iter().find(|entry| entry["id"] == "TB-8b").unwrap();
    let cause = &updates["causes"][0];
    assert_eq!(
        (&cause["without"]["outcome"], &cause["without"]["about"]),
        (&"refuted".into(), &"tb-collect against NoGC".into())
    );
    let without = cause["commands"].as_array().unwrap();
    assert!(without.len() == 2 && without[0].as_str().unwrap().contains("--medium nvm:optane-400 "));
    let page = fs::read_to_string(path).unwrap();
    assert!(
        page.contains("with a tenth of the bandwidth: tb-collect against NoGC is")
            && page.contains("that is not the cause")
    );
    let commands = throughput["benchmarks"].as_array().unwrap();
    assert_eq!(commands.len(), 1);
    let command = commands[0].as_str().unwrap();
    assert!(command.contains("--gc none,tb-collect,zen,one-shot,n2db,steam"), "{command}");
    assert!(command.ends_with("--runs 3"), "{command}");
}
