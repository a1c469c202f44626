//! The whole page: nothing from outside gets into it as markup, and it reaches for nothing outside.

use super::page;
use crate::report::{Cell, Chart, FaultSpan, Findings, Line, Report, ScheduleReport, Table, text};
use crate::scenario::{Expectation, Mode, Scenario, What};

/// Characters that a name in a scenario file may contain.
const ODD: &str = "</title></svg><script>alert('x')</script>\"onload=\"y\" & \u{1b}[2J\u{0}";

/// Elements that are never closed.
const VOID: [&str; 2] = ["meta", "!doctype"];

fn scenario() -> Scenario {
    let text = r#"
        about = "x"
        duration_s = 10
        upstreams = { count = 1, slots = 4, queue = 4 }
        class = [{ name = "a", share = 1.0, service = { kind = "fixed", ms = 100 } }]
        phase = [{ name = "one" }, { name = "two" }]
        fault = [{ kind = "slow", factor = 2, from_s = 2, until_s = 9 }, { kind = "dead", from_s = 3, until_s = 4 }]
    "#;
    Scenario::read(ODD, text).expect("it is one")
}

fn line(points: usize) -> Line {
    let value = |at: usize| (!at.is_multiple_of(50)).then_some(at as f64);
    Line {
        name: ODD.to_owned(),
        points: (0..points).map(|at| (at as f64 * 10.0 / points as f64, value(at))).collect(),
    }
}

/// A report in which every name is an odd one.
fn odd_report() -> Report {
    let mut scenario = scenario();
    scenario.about = ODD.to_owned();
    scenario.phases.iter_mut().for_each(|phase| phase.name = ODD.to_owned());
    let expect = |max| Expectation {
        what: What::RefusedShare,
        of: ODD.to_owned(),
        phase: Some(ODD.to_owned()),
        against: None,
        floor: None,
        min: None,
        max: Some(max),
        only: None,
        why: Some(ODD.to_owned()),
    };
    scenario.expectations = vec![expect(0.5), expect(0.1)];
    let table = Table {
        title: ODD.to_owned(),
        columns: vec![ODD.to_owned(), ODD.to_owned()],
        rows: vec![vec![Cell::Text(ODD.to_owned()), Cell::number(Some(1.5), 1)]; 2_000],
    };
    let chart = Chart { title: ODD.to_owned(), unit: ODD.to_owned(), lines: vec![line(5_000); 12] };
    let mut findings = Findings {
        tables: vec![table],
        charts: vec![chart],
        notes: vec![ODD.to_owned()],
        ..Findings::default()
    };
    findings.figure(What::RefusedShare, ODD, Some(ODD), 0.2);
    let mut report = Report::new(&scenario, Mode::Drill, 3, findings);
    report.target = Some(ODD.to_owned());
    report.command = Some(ODD.to_owned());
    report.schedule = Some(ScheduleReport { unsent: 1, ..ScheduleReport::default() });
    report.faults.push(FaultSpan { what: ODD.to_owned(), from_s: 1.0, until_s: 8.0 });
    report
}

/// The names of all tags in the order in which they stand, those that close with a slash before them. Panics
/// where a `<` begins no tag, or one has no end.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let until = rest.find('>').expect("every tag has an end");
        let tag = &rest[..until];
        assert!(!tag.contains('<'), "a tag within a tag: {tag}");
        assert!(tag.matches('"').count().is_multiple_of(2), "an open attribute: {tag}");
        let name: String = tag.chars().take_while(|c| !c.is_whitespace()).collect();
        rest = &rest[until + 1..];
        if ["style", "script"].contains(&name.as_str()) {
            let end = rest.find(&format!("</{name}>")).expect("what is no markup has an end");
            rest = &rest[end..];
        }
        if !tag.ends_with('/') {
            tags.push(name);
        }
    }
    tags
}

fn assert_well_formed(html: &str) {
    let mut open = Vec::new();
    for tag in tags(html) {
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed), "within {open:?}"),
            None if VOID.contains(&tag.as_str()) => {}
            None => open.push(tag),
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let html = page(&odd_report());
    assert_well_formed(&html);
    assert_eq!(html.matches("<script").count(), 1, "only the page's own");
    assert!(!html.contains("\"onload"), "no attribute is broken out of");
    assert!(!html.contains(['\u{0}', '\u{1b}']));
    assert!(html.contains("&lt;script&gt;alert(&#39;x&#39;)"), "but what it is called is shown");
}

#[test]
fn a_page_that_is_wrong_would_be_found() {
    let html = page(&odd_report());
    let broken = html.replacen("</table>", "", 1);
    assert!(std::panic::catch_unwind(|| assert_well_formed(&broken)).is_err());
}

#[test]
fn the_page_refers_to_nothing_outside_of_it() {
    let html = page(&odd_report());
    for outside in ["http://", "https://", "src=", "href=", "@import", "url(h", "//cdn", "xmlns"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert_eq!(html.matches("url(").count(), html.matches("url(#").count());
}

#[test]
fn a_page_has_a_bounded_size_and_always_the_same_bytes() {
    let html = page(&odd_report());
    // Eight lines of 600 points with about 30 letters each, twice, and 1,000 rows.
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(html, page(&odd_report()));
    assert!(html.contains("<li>4 more not drawn</li>"), "12 lines, of which 8 are drawn");
    assert!(html.contains("1000 more rows are in what"));
}

#[test]
fn a_page_without_anything_is_a_page() {
    let mut report = Report::new(&scenario(), Mode::Sim, 1, Findings::default());
    assert_well_formed(&page(&report));
    report.phases.clear();
    report.findings.charts.push(Chart { title: "x".into(), unit: "ms".into(), lines: vec![] });
    let html = page(&report);
    assert_well_formed(&html);
    assert!(html.contains("Not judged") && html.contains("There is nothing to show."));
}

#[test]
fn the_verdict_is_in_words_and_in_counts() {
    let html = page(&odd_report());
    assert!(html.contains("</span> Missed</p>"));
    assert!(html.contains("1 of 2 expectations missed, 1 held."));
    let text = text::render(&odd_report());
    assert!(text.ends_with("\nMISSED: 1 of 2 expectations\n"), "{text}");
}

#[test]
fn what_was_stopped_says_so_and_not_that_nothing_was_expected() {
    let stopped = odd_report().stopped_after(Some(4.0));
    let (html, text) = (page(&stopped), text::render(&stopped));
    assert!(html.contains("Stopped early") && !html.contains("expects nothing"));
    assert!(text.ends_with("\nStopped before its end, so nothing was judged.\n"), "{text}");
    assert!(stopped.faults.iter().all(|fault| fault.from_s < 4.0));
    assert_eq!((stopped.duration_s, stopped.checks.len()), (4.0, 0));
}

#[test]
fn the_command_stands_on_the_page_as_it_was_typed() {
    let mut report = odd_report();
    report.command = Some("tidegate sim '/tmp/my scenario.toml' --seed 3 --short".to_owned());
    let html = page(&report);
    assert!(html.contains("tidegate sim &#39;/tmp/my scenario.toml&#39; --seed 3 --short</code>"));
    report.command = None;
    assert!(!page(&report).contains("Run it again"));
}

#[test]
fn a_terminal_gets_no_control_and_no_line_that_is_too_long() {
    let mut report = odd_report();
    report.findings.tables.clear();
    let text = text::render(&report);
    assert!(!text.contains(['\u{0}', '\u{1b}']));
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest <= Some(100), "{longest:?}\n{text}");
    assert!(text.contains("WARNING: the generator did not keep its own schedule: 1 requests"));
}

#[test]
fn a_gap_is_a_gap() {
    let mut report = odd_report();
    let points =
        vec![(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(3.0)), (4.0, None)];
    report.findings.charts[0].lines = vec![Line { name: "x".into(), points }];
    let html = page(&report);
    let path = html.split("data-name=\"x\"").nth(1).and_then(|rest| rest.split("/>").next());
    let path = path.and_then(|path| path.split(" d=\"").nth(1)).expect("a line has a path");
    assert_eq!(path.matches('M').count(), 2, "{path}");
    assert_eq!(path.matches('L').count(), 1, "{path}");
    assert!(path.contains("h0"), "what stands alone is a dot: {path}");
}
