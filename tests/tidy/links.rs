//! Relative links in Markdown.

use super::tree::name;
use std::fs;
use std::path::Path;

/// The links of a document that lead to no file.
pub fn dead_links(document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).unwrap_or_default();
    let folder = document.parent().unwrap_or(document);
    let mut findings = Vec::new();
    for (number, line) in lines_outside_code(&text) {
        for target in link_targets(&line) {
            let path = target.split('#').next().unwrap_or_default();
            if is_relative(&target) && !folder.join(path).exists() {
                findings.push(format!("{}:{number}: {target}", name(document)));
            }
        }
    }
    findings
}

fn is_relative(target: &str) -> bool {
    let absolute = target.contains("://") || target.starts_with("mailto:");
    !absolute && !target.starts_with('#') && !target.is_empty()
}

/// Lines with their numbers; fenced blocks are left out, and code within a line is blanked.
fn lines_outside_code(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, without_inline_code(line)));
        }
    }
    lines
}

/// Every second part between backticks is code. The backticks go too: a link's text may be code.
fn without_inline_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Targets of `[text](target)`, and of `[label]: target` at the start of a line.
fn link_targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let reference = line.starts_with('[').then(|| line.split_once("]: ")).flatten();
    inline.chain(reference.map(|(_, target)| target.trim())).map(str::to_owned).collect()
}

#[test]
fn links_are_found_and_code_is_not() {
    let text = "[a](one.md) and [`b`](two.md#part)\n```\n[c](three.md)\n```\n`[d](four.md)`\n[e]: five.md\n";
    let found: Vec<_> =
        lines_outside_code(text).iter().flat_map(|(_, line)| link_targets(line)).collect();
    assert_eq!(found, ["one.md", "two.md#part", "five.md"]);
}

#[test]
fn only_relative_links_are_looked_up() {
    for (target, relative) in [
        ("docs/a.md", true),
        ("../a.md#b", true),
        ("#b", false),
        ("https://a/b", false),
        ("mailto:a@b", false),
    ] {
        assert_eq!(is_relative(target), relative, "{target}");
    }
}
