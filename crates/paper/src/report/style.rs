//! The look of the page, on screen and on paper.

/// The style sheet.
pub const CSS: &str = "
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #5a5a5a; --line: #d5d5d5; --ground: #f6f6f4; --paper: #fff;
  --link: #005a8c; --there: #7a3b00; --warn: #fdf3ec; --good: #00573f; --good-ground: #e4f4ee; --bad: #8a3c00; --bad-ground: #fdeee3;
  --dim: #444; --dim-ground: #f1f1f1; }
@media (prefers-color-scheme: dark) { @media screen {
  :root { --ink: #e8e8e6; --soft: #a9a9a9; --line: #444; --ground: #262626; --paper: #191919;
    --link: #7cc4f0; --there: #f0b27a; --warn: #3a2a20; --good: #8fe0c1; --good-ground: #12352a; --bad: #ffb488; --bad-ground: #402413;
    --dim: #ccc; --dim-ground: #2c2c2c; }
} }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 66rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.35rem; line-height: 1.3; margin: 0 0 .4rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
a { color: var(--link); }
p { margin: .5rem 0; max-width: 48rem; }
code { font: .86em/1.5 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; }
pre { background: var(--ground); padding: .6rem .8rem; margin: .4rem 0; white-space: pre-wrap; overflow-wrap: anywhere;
  border-radius: 4px; }
dl.about { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 1rem 0; }
dl.about dt { color: var(--soft); } dl.about dd { margin: 0; overflow-wrap: anywhere; }
.notice { border-left: 4px solid #D55E00; background: var(--warn); padding: .5rem .8rem; margin: .8rem 0; }
.notice ul { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #8a8a8a; font-weight: 600; vertical-align: bottom; }
table.summary { width: 100%; table-layout: fixed; }
table.summary th, table.summary td { overflow-wrap: break-word; }
table.summary col.id { width: 6.6rem; } table.summary col.verdict { width: 13rem; } table.summary col.title { width: 22%; }
table.summary td.verdict small { display: block; white-space: normal; }
table.data td, table.data thead th:not(:first-child) { text-align: right; }
table.data th[scope=row] { font-weight: 500; white-space: nowrap; }
td small { display: block; color: var(--soft); font-size: .78rem; white-space: nowrap; }
td small.there { color: var(--there); }
.badge { display: inline-block; padding: .05rem .5rem; border-radius: 3px; font-size: .84rem; font-weight: 600; white-space: nowrap;
  border: 1.5px solid; }
.badge::before { margin-right: .35em; }
.holds { color: var(--good); background: var(--good-ground); border-color: #009E73; } .holds::before { content: '\\2713'; }
.fails { color: var(--bad); background: var(--bad-ground); border-color: #D55E00; } .fails::before { content: '\\2717'; }
.badge.undecided { color: var(--dim); background: var(--dim-ground); border-color: #8a8a8a; } .badge.undecided::before { content: '~'; }
.open { color: var(--dim); background: var(--dim-ground); border-color: #8a8a8a; border-style: dashed; } .open::before { content: '?'; }
ul.parts { margin: .4rem 0; padding: 0; list-style: none; max-width: 54rem; font-size: .92rem; }
ul.parts li { margin: .15rem 0; padding-left: 5.8rem; text-indent: -5.8rem; }
.outcome { display: inline-block; width: 5.5rem; text-indent: 0; font-weight: 600; }
.outcome.held { color: var(--good); } .outcome.refuted { color: var(--bad); } .outcome.undecided { color: var(--soft); }
section.claim { border-top: 2px solid var(--ink); padding-top: 1rem; margin-top: 2.6rem; }
.source { color: var(--soft); }
.reason { margin: .8rem 0; }
.cause { border-left: 4px solid #8a8a8a; padding-left: .8rem; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: .8rem 0; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; max-width: 46rem; }
figure { margin: 1.4rem 0; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { display: block; width: 100%; max-width: 47.5rem; height: auto; }
svg.patterns { position: absolute; width: 0; height: 0; }
details { margin: .5rem 0; } summary { cursor: pointer; color: var(--link); }
@media screen and (max-width: 42rem) { .wide { display: none; } table.summary { table-layout: auto; }
  table.summary col[class] { width: auto; } table.summary .badge { white-space: normal; }
  figure { overflow-x: auto; } figure svg { min-width: 34rem; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  section.claim { break-before: page; margin-top: 0; border-top: 0; }
  figure, table.data tr, .reason { break-inside: avoid; }
  .scroll { overflow: visible; } table { font-size: 8pt; } .badge { font-size: 7.5pt; }
  details > summary { display: none; } details::details-content { content-visibility: visible; display: block; height: auto; }
  .badge, svg, pre, .notice { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  a { color: inherit; text-decoration: none; }
}
";
