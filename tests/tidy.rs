//! Style is a test: what reviewers would otherwise have to remember. Run it alone with
//! `cargo test -p tidegate-core --test tidy`.
//!
//! Each check collects everything that is wrong and says what to do about it. The limits ratchet: they only
//! ever go down.

#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;

use source::Source;
use tree::root;

/// A file that passes this is asking to be two.
const FILE_LINES_MAX: usize = 500;

/// A function that passes this is asking to be two.
const FUNCTION_LINES_MAX: usize = 70;

/// As rustfmt has it; checked here because rustfmt gives up on what it can't break.
const CODE_COLUMNS_MAX: usize = 100;

/// Prose is read, not diffed in columns: it may run a little wider than code.
const COMMENT_COLUMNS_MAX: usize = 115;

/// A folder that holds more files than this has sub-capabilities that want a name.
const FOLDER_FILES_MAX: usize = 16;

/// How many `.expect(` there are in shipped code. Lower it when one goes; argue before raising it.
const EXPECTS: usize = 2;

/// Fails with a heading that says what to do, and all findings below it.
fn assert_none(findings: &[String], what_to_do: &str) {
    assert!(findings.is_empty(), "\n{what_to_do}\n  {}\n", findings.join("\n  "));
}

fn shipped() -> Vec<Source> {
    Source::read_all(&tree::shipped_rust_files())
}

#[test]
fn no_file_is_too_long() {
    let findings: Vec<_> = shipped()
        .iter()
        .filter(|source| source.line_count() > FILE_LINES_MAX)
        .map(|source| format!("{}: {} lines", source.name, source.line_count()))
        .collect();
    assert_none(&findings, "Split these files: each holds more than 500 lines.");
}

#[test]
fn no_function_is_too_long() {
    let mut findings = Vec::new();
    for source in shipped() {
        for function in source.functions().filter(|function| function.lines > FUNCTION_LINES_MAX) {
            let at = source.place(function.offset);
            findings.push(format!("{at}: `{}` has {} lines", function.name, function.lines));
        }
    }
    assert_none(&findings, "Split these functions: each is longer than 70 lines.");
}

#[test]
fn no_folder_is_too_wide() {
    let mut folders = std::collections::BTreeMap::<String, usize>::new();
    for source in shipped() {
        let (folder, _) = source.name.rsplit_once('/').unwrap_or_default();
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    let findings: Vec<_> = folders
        .into_iter()
        .filter(|(_, files)| *files > FOLDER_FILES_MAX)
        .map(|(folder, files)| format!("{folder}: {files} files"))
        .collect();
    assert_none(&findings, "Find the sub-capabilities of these folders, and give each a folder.");
}

#[test]
fn modules_form_a_graph_without_cycles() {
    let sources = shipped();
    let mut findings = Vec::new();
    for krate in tree::crate_names() {
        let folder = format!("crates/{krate}/src/");
        let cycles = modules::ModuleGraph::of(&folder, &sources).cycles();
        findings.extend(cycles.into_iter().map(|cycle| format!("{krate}: {cycle}")));
    }
    assert_none(&findings, "What two modules need lies below both: move it there.");
}

#[test]
fn doc_comments_say_what_an_item_is_or_does() {
    let findings: Vec<_> = shipped().iter().flat_map(prose::riddles).collect();
    assert_none(&findings, "Open these with the noun that a reader searches for, or with a verb.");
}

#[test]
fn statuses_are_chosen_in_one_module() {
    let findings: Vec<_> = shipped()
        .iter()
        .filter(|source| source.name.starts_with("crates/tidegate-server/src/"))
        .filter(|source| !source.name.starts_with("crates/tidegate-server/src/http/"))
        .flat_map(|source| source.words(&source.shipped, "StatusCode::"))
        .collect();
    assert_none(&findings, "Return a typed error: `http/error_response` chooses the status.");
}

#[test]
fn the_architecture_names_only_what_exists() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap_or_default();
    assert!(!text.is_empty(), "ARCHITECTURE.md is missing");
    let findings = prose::missing_paths("ARCHITECTURE.md", &text);
    assert_none(&findings, "Correct these paths: nothing is there.");
}

#[test]
fn nothing_is_left_for_later() {
    // Put together here, so that this file does not find itself.
    let macros = [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];
    let notes = [concat!("FIX", "ME"), concat!("TO", "DO")];
    let attribute = concat!("#[ig", "nore");
    let mut findings = Vec::new();
    for source in Source::read_all(&tree::rust_files()) {
        for word in macros {
            findings.extend(source.words(&source.code, word));
        }
        findings.extend(source.mentions(&source.code, attribute));
        for word in notes {
            findings.extend(source.words(&source.text, word));
        }
    }
    assert_none(&findings, "Finish these, or open an issue and remove them.");
}

#[test]
fn shipped_code_does_not_unwrap() {
    let findings: Vec<_> =
        shipped().iter().flat_map(|source| source.mentions(&source.shipped, ".unwrap()")).collect();
    assert_none(&findings, "Return an error, or prove with `expect` why this can't fail.");
}

#[test]
fn expectations_only_become_fewer() {
    let found: Vec<_> =
        shipped().iter().flat_map(|source| source.mentions(&source.shipped, ".expect(")).collect();
    assert_eq!(
        found.len(),
        EXPECTS,
        "\nMore than EXPECTS in tests/tidy.rs: return an error instead. Fewer: lower EXPECTS.\n  {}\n",
        found.join("\n  "),
    );
}

#[test]
fn a_mod_file_only_declares_and_re_exports() {
    let mut findings = Vec::new();
    for source in shipped().iter().filter(|source| source.name.ends_with("/mod.rs")) {
        for keyword in ["fn", "impl", "struct", "enum", "trait"] {
            findings.extend(source.words(&source.shipped, keyword));
        }
    }
    assert_none(
        &findings,
        "Move these into a file of their own: `mod.rs` is the table of contents.",
    );
}

#[test]
fn lines_are_narrow_enough_to_read() {
    let mut findings = Vec::new();
    for source in Source::read_all(&tree::rust_files()) {
        for line in source.wide_lines(CODE_COLUMNS_MAX, COMMENT_COLUMNS_MAX) {
            findings.push(format!("{}:{line}", source.name));
        }
    }
    assert_none(&findings, "Break these lines: code at 100 columns, comments at 115.");
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    let places = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tmp/", "bash")];
    let mut findings = Vec::new();
    for path in tree::all_files() {
        // What is not text can't be read as text, and is not what this is about.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let source = Source::new(tree::name(&path), text);
        for place in places {
            findings.extend(source.words(&source.text, place));
        }
    }
    assert_none(
        &findings,
        "Use paths relative to the repository: these exist on one machine only.",
    );
}

#[test]
fn decisions_mention_nothing_ambient() {
    let pure = ["crates/tidegate-core/src/", "crates/tidegate-sim/src/"];
    let ambient = ["Instant::now", "SystemTime", "rand::", "tokio"];
    let mut findings = Vec::new();
    for source in shipped() {
        if pure.iter().any(|folder| source.name.starts_with(folder)) {
            findings.extend(ambient.iter().flat_map(|word| source.words(&source.code, word)));
        }
    }
    assert_none(
        &findings,
        "Take time and chance as arguments: core and the simulator have none of their own.",
    );
}

#[test]
fn clippy_forbids_ambient_time_where_decisions_are_made() {
    let forbidden = ["std::time::Instant::now", "std::time::SystemTime::now", "std::thread::sleep"];
    let mut findings = Vec::new();
    for krate in ["tidegate-core", "tidegate-sim"] {
        let listed = manifests::disallowed_methods(krate);
        let absent = forbidden.iter().filter(|method| !listed.iter().any(|path| path == *method));
        findings.extend(absent.map(|method| format!("crates/{krate}/clippy.toml: {method}")));
    }
    assert_none(&findings, "Add these to `disallowed-methods`.");
}

#[test]
fn the_crates_are_those_that_forbid_a_dependency() {
    let found = tree::crate_names();
    assert_eq!(
        found,
        [
            "tidegate",
            "tidegate-cli",
            "tidegate-core",
            "tidegate-server",
            "tidegate-sim",
            "tidegate-testkit"
        ],
        "a crate exists only to forbid a dependency: put the code into a folder of one of these",
    );
}

#[test]
fn crates_depend_only_on_what_they_may() {
    let findings: Vec<_> = manifests::RULES.iter().flat_map(manifests::Rule::violations).collect();
    assert_none(&findings, "Move the code that needs it to a crate that may: see ARCHITECTURE.md.");
}

#[test]
fn links_lead_somewhere() {
    assert!(
        root().join("README.md").exists(),
        "README.md is missing: it is what people open first"
    );
    let findings: Vec<_> =
        tree::documents().iter().flat_map(|path| links::dead_links(path)).collect();
    assert_none(&findings, "Correct these links: nothing is there.");
}
