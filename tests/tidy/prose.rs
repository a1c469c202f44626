//! The voice of doc comments, and the paths that documents name.

use super::source::Source;
use super::tree::{all_files, name};

/// Words with which no doc line opens: it says what an item is or does, with the noun that a reader searches for.
const RIDDLES: [&str; 11] =
    ["Who", "Whom", "Whose", "What", "Whether", "How", "That", "Whoever", "Whatever", "So", "It"];

/// The doc lines of a file that open with a riddle.
pub fn riddles(source: &Source) -> Vec<String> {
    let opens_so = |line: &str| {
        let text = line.trim_start();
        let prose = text.strip_prefix("/// ").or_else(|| text.strip_prefix("//! "))?;
        let first = prose.split(|char: char| !char.is_alphanumeric()).next()?;
        RIDDLES.contains(&first).then(|| prose.to_owned())
    };
    let lines = source.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            Some(format!("{}:{}: {}", source.name, index + 1, opens_so(line)?))
        })
        .collect()
}

/// The files and folders that a document names in code spans and that do not exist.
///
/// A span is taken for a path when it ends in `/` or in an extension of ours and holds nothing but a path. It may
/// be relative to the repository, or the end of any path in it: `gateway/proxy/` or `in_flight.rs`.
pub fn missing_paths(document: &str, text: &str) -> Vec<String> {
    let files: Vec<String> = all_files().iter().map(|path| name(path)).collect();
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for span in line.split('`').skip(1).step_by(2).filter(|span| is_path(span)) {
            let there = |file: &String| match span.strip_suffix('/') {
                Some(folder) => {
                    let whole = format!("/{file}");
                    whole.contains(&format!("/{}/", folder.trim_start_matches('/')))
                }
                None => *file == *span || file.ends_with(&format!("/{span}")),
            };
            if !files.iter().any(there) {
                findings.push(format!("{document}:{}: {span}", index + 1));
            }
        }
    }
    findings
}

fn is_path(span: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-./".contains(char);
    let ends = [".rs", ".md", ".toml", ".py", ".yml", ".lua", "/"];
    // A path of HTTP or of the file system begins with a slash.
    span.chars().all(plain) && ends.iter().any(|end| span.ends_with(end)) && !span.starts_with('/')
}

#[test]
fn riddles_are_found_in_doc_lines_only() {
    let text = "/// What it is.\n// What for.\n/// A queue.\n//! How it works.\n    /// It, too.\n/// Items.";
    let source = Source::new("x.rs".into(), text.into());
    let found: Vec<_> = riddles(&source);
    assert_eq!(found, ["x.rs:1: What it is.", "x.rs:4: How it works.", "x.rs:5: It, too."]);
}

#[test]
fn only_what_looks_like_a_path_is_looked_for() {
    for (span, path) in [
        ("tests/tidy.rs", true),
        ("docs/", true),
        ("in_flight.rs", true),
        ("/v1/tasks/", false),
        ("*.toml", false),
        ("InFlightTracker", false),
    ] {
        assert_eq!(is_path(span), path, "{span}");
    }
    assert!(missing_paths("x.md", "`tests/tidy.rs` and `crates/`").is_empty());
    assert_eq!(missing_paths("x.md", "\n`no_such_file.rs`"), ["x.md:2: no_such_file.rs"]);
}
