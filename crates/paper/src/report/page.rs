//! The page: a single self-contained file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::style::CSS;
use super::{About, Entry, Report, table};
use crate::svg;
use crate::verdict::Verdict;

/// The page of a report.
pub fn to_html(report: &Report) -> String {
    let Report { about, entries } = report;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Pantile: published results on this machine" }
                style { (PreEscaped(CSS)) (PreEscaped(svg::style::CSS)) }
            }
            body {
                (svg::patterns())
                header {
                    h1 { "Published results on this machine" }
                    p {
                        "Each published result was measured again at this machine's size. Ratios between collectors in the same \
                         repetitions count; absolute numbers of other machines do not. Verdicts follow the rule of each \
                         claim; a difference within noise is not a difference."
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
                (count(Verdict::CannotBeJudged)) " cannot be judged here"
            }
            dt { "machine" } dd { (about.build.machine) }
            dt { "commit" } dd { code { (about.build.commit) } }
            dt { "date" } dd { (about.date) }
            dt { "size" } dd { (about.size) }
            dt { "runs" }
            dd {
                (about.made) " in " (humantime::format_duration(elapsed).to_string())
                @if about.reused > 0 { ", and " (about.reused) " from before" }
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
        @if about.left_out > 0 {
            p.notice { "There was no time for " (about.left_out) " runs; run the same command to continue with them." }
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
                colgroup { col.id; col.title; col; col; col.verdict; }
                thead {
                    tr {
                        th scope="col" { "claim" }
                        th scope="col" { "about" }
                        th scope="col" { "published" }
                        th scope="col" { "ours" }
                        th scope="col" { "verdict" }
                    }
                }
                tbody {
                    @for Entry { claim, finding, .. } in entries {
                        tr {
                            th scope="row" { a href=(format!("#{}", claim.anchor())) { (claim.id) } }
                            td { (claim.title) }
                            td { (claim.published) }
                            td { @if finding.ours.is_empty() { "not measured" } @else { (finding.ours) } }
                            td { (badge(finding.judgement.verdict)) }
                        }
                    }
                }
            }
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "fails",
        Verdict::CannotBeJudged => "open",
    };
    html! { span class=(format!("verdict {class}")) { (verdict.words()) } }
}

/// The command that examines this claim again.
pub fn command(entry: &Entry, size: &str) -> String {
    let quick = if size == "quick" { " --quick" } else { "" };
    format!("pantile paper {}{quick}", entry.claim.id)
}

fn claim(entry: &Entry, about: &About) -> Markup {
    let Entry { claim, finding, commands, runs } = entry;
    html! {
        section.claim id=(claim.anchor()) {
            h2 { (claim.id) ": " (claim.title) }
            p { (claim.text) " " span.source { "(" (claim.source) ")" } }
            p.reason { (badge(finding.judgement.verdict)) " " (finding.judgement.reason) }
            dl.facts {
                dt { "published" } dd { (claim.published) }
                @if !finding.ours.is_empty() { dt { "ours" } dd { (finding.ours) } }
                dt { "holds if" } dd { (claim.rule) }
                @if *runs > 0 { dt { "runs" } dd { (runs) } }
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
            pre { code { (command(entry, about.size)) } }
            @if !commands.is_empty() {
                p { "Or run by run:" }
                pre { code { (commands.join("\n")) } }
            }
        }
    }
}
