//! The page: a single self-contained file.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pantile_bench::cpu::MOST_FOR_OTHERS;

use super::style::CSS;
use super::{About, Entry, Report, table};
use crate::claims::Explanation;
use crate::numbers::{FEWEST, Outcome, percent};
use crate::spec::RunSpec;
use crate::svg;
use crate::verdict::{Judgement, Verdict};

/// The page of a report.
pub fn to_html(report: &Report) -> String {
    let Report { about, entries } = report;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Pantile: published results on this machine" }
                style { (PreEscaped(CSS)) (PreEscaped(svg::style::CSS)) (PreEscaped(svg::style::DARK)) }
            }
            body {
                (svg::patterns())
                header {
                    h1 { "Published results on this machine" }
                    p {
                        "Each published result was measured again at this machine's size. Ratios between collectors in the same \
                         repetitions count; absolute numbers of other machines do not. Each condition of a claim is judged by \
                         itself. Numbers in brackets, and the thin lines in plots, are intervals that contain the true value with 95 % \
                         confidence (Student's distribution, at least " (FEWEST) " repetitions). A condition is held if the whole interval \
                         meets it, refuted if no value in it does or if it is known to be a tie within one percent, and undecided otherwise."
                    }
                    (overview(about, entries))
                    (notices(about))
                }
                main {
                    (summary(entries))
                    @for entry in entries { (claim(entry, about)) }
                }
            }
        }
    };
    page.into_string()
}

fn overview(about: &About, entries: &[Entry]) -> Markup {
    let count = |verdict| entries.iter().filter(|entry| entry.finding.judgement.verdict == verdict).count();
    let elapsed = std::time::Duration::from_secs(about.elapsed.as_secs());
    html! {
        dl.about {
            dt { "verdicts" }
            dd {
                (count(Verdict::Holds)) " hold, " (count(Verdict::DoesNotHold)) " do not hold, "
                (count(Verdict::Undecided)) " are undecided, " (count(Verdict::CannotBeJudged)) " cannot be judged here"
            }
            dt { "machine" } dd { (about.build.machine) }
            dt { "commit" } dd { code { (about.build.commit) } }
            dt { "date" } dd { (about.date) }
            dt { "size" } dd { (about.size) }
            dt { "runs" }
            dd {
                (about.made) " in " (humantime::format_duration(elapsed).to_string())
                @if about.reused > 0 { ", and " (about.reused) " from before" }
                @if about.repeated > 0 { "; " (about.repeated) " more were attempts that other programs disturbed" }
            }
        }
    }
}

/// Reasons why the numbers are less reliable than they should be.
fn notices(about: &About) -> Markup {
    html! {
        @if about.build.debug {
            p.notice { "This is a debug build; its numbers mean nothing." }
        }
        @if about.interrupted {
            p.notice { "The runs were interrupted; run the same command to continue with the missing ones." }
        }
        @if let Some(share) = about.shortened {
            p.notice {
                "Runs were shortened to " (percent(share)) " of their length to fit the time. What takes long to show may not show in them; "
                "give more time with " code { "--budget" } " for the whole length."
            }
        }
        @if about.left_out > 0 {
            p.notice { "There was no time for " (about.left_out) " runs; run the same command to continue with them." }
        }
        @if about.too_few > 0 {
            p.notice {
                (about.too_few) " runs were made fewer than " (FEWEST) " times for lack of time, which decides nothing. Judge fewer claims at \
                 once, or give more time with " code { "--budget" } "; the same command continues."
            }
        }
        @if about.not_repeated > 0 {
            p.notice {
                "There was no time for " (about.not_repeated) " further runs, which might have decided conditions or shown why they are refuted. \
                 The same command with more " code { "--budget" } " continues."
            }
        }
        @if about.off_bound > 0 {
            p.notice {
                "The emulated memory was more than a tenth off its configuration just before " (about.off_bound) " runs: something else was \
                 using the machine. They count like the others."
            }
        }
        @if about.disturbed > 0 {
            p.notice {
                "Other programs took more than " (MOST_FOR_OTHERS * 100.0) " % of the processors' time in " (about.disturbed) " runs. They \
                 count like the others, and widen the intervals."
            }
        }
        @if !about.failed.is_empty() {
            div.notice {
                (about.failed.len()) " runs failed:"
                ul { @for failed in &about.failed { li { (failed) } } }
            }
        }
    }
}

fn summary(entries: &[Entry]) -> Markup {
    html! {
        div.scroll {
            table.summary {
                colgroup { col.id; col.verdict; col.title; col.wide; col.wide; }
                thead {
                    tr {
                        th scope="col" { "claim" }
                        th scope="col" { "verdict" }
                        th scope="col" { "about" }
                        th.wide scope="col" { "published" }
                        th.wide scope="col" { "ours" }
                    }
                }
                tbody {
                    @for Entry { claim, finding, .. } in entries {
                        tr {
                            th scope="row" { a href=(format!("#{}", claim.anchor())) { (claim.id) } }
                            td.verdict { (badge(&finding.judgement)) small { (finding.judgement.counts()) } }
                            td { (claim.title) }
                            td.wide { (claim.published) }
                            td.wide { @if finding.ours.is_empty() { "not measured" } @else { (finding.ours) } }
                        }
                    }
                }
            }
        }
    }
}

fn badge(judgement: &Judgement) -> Markup {
    let class = match judgement.verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "fails",
        Verdict::Undecided => "undecided",
        Verdict::CannotBeJudged => "open",
    };
    html! { span class=(format!("badge {class}")) { (judgement.verdict.words()) } }
}

/// The conditions one by one, those that decide first.
fn parts(judgement: &Judgement) -> Markup {
    let with = |wanted| judgement.parts.iter().filter(move |part| part.outcome == wanted);
    html! {
        @if !judgement.parts.is_empty() {
            details open[judgement.verdict != Verdict::Holds] {
                summary { "condition by condition" }
                ul.parts {
                    @for outcome in [Outcome::Refuted, Outcome::Undecided, Outcome::Held] {
                        @for part in with(outcome) {
                            li { span class=(format!("outcome {}", outcome.word())) { (outcome.word()) } " " (part.found) }
                        }
                    }
                }
            }
        }
    }
}

/// Why conditions are refuted, as far as runs without a supposed cause show it.
fn causes(explanations: &[Explanation]) -> Markup {
    html! {
        @for explanation in explanations {
            @let Explanation { cause, part, runs } = explanation;
            p.cause {
                b { "Why? " } (cause.because) " Measured " (cause.change) ": " (part.found) "; " (explanation.conclusion()) "."
            }
            pre { code { (runs.iter().map(RunSpec::key).collect::<Vec<_>>().join("\n")) } }
        }
    }
}

/// The command that examines this claim again.
pub fn command(entry: &Entry, about: &About) -> String {
    let quick = if about.size == "quick" { " --quick" } else { "" };
    let budget = about.budget.map_or(String::new(), |seconds| format!(" --budget {seconds}"));
    format!("pantile paper {}{quick}{budget}", entry.claim.id)
}

fn claim(entry: &Entry, about: &About) -> Markup {
    let Entry { claim, finding, explanations, commands, runs, distinct, repetitions: (fewest, most) } = entry;
    html! {
        section.claim id=(claim.anchor()) {
            h2 { (claim.id) ": " (claim.title) }
            p { (claim.text) " " span.source { "(" a href=(claim.publication()) { (claim.source) } ")" } }
            p.reason { (badge(&finding.judgement)) " " (finding.judgement.reason) }
            (parts(&finding.judgement))
            (causes(explanations))
            dl.facts {
                dt { "published" } dd { (claim.published) }
                @if !finding.ours.is_empty() { dt { "ours" } dd { (finding.ours) } }
                dt { "holds if" } dd { (claim.rule) }
                @if *runs > 0 {
                    dt { "runs" }
                    dd {
                        (runs) ": each of " (distinct) " made "
                        @if fewest == most { (most) } @else { (fewest) " to " (most) }
                        @if *most == 1 { " time" } @else { " times" }
                    }
                }
            }
            @for figure in &finding.figures {
                figure {
                    figcaption { (figure.title) }
                    (svg::draw(figure))
                }
                details open[true] {
                    summary { "in numbers" }
                    (table::draw(figure))
                }
            }
            h3 { "Run it again" }
            pre { code { (command(entry, about)) } }
            @if !commands.is_empty() {
                p { "Or run by run. Repetitions differ by the seed: the first has 42 (" code { "--seed 42" } "), the next 43, and so on." }
                pre { code { (commands.join("\n")) } }
            }
        }
    }
}
