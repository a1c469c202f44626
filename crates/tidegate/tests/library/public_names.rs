//! The public names of the library: one name means one type, in this crate and in the parts of core that it
//! re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where a name is declared: a crate and one of its top-level modules.
type Origin = (&'static str, String);

/// Re-exported or declared types of a source file. `pub use` of another crate's module names that module.
fn collect(
    names: &mut BTreeMap<String, BTreeSet<Origin>>,
    (package, module): (&'static str, &str),
    text: &str,
) {
    for statement in text.split("\npub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let (path, items) = match statement.split_once('{') {
            Some((path, items)) => (path, items.trim_end_matches('}')),
            None => statement.rsplit_once("::").unwrap_or(("", statement)),
        };
        let origin = match path.strip_prefix("tidegate_core::") {
            Some(path) => ("core", path.split("::").next().unwrap_or_default().to_owned()),
            None if path.starts_with("crate::storage") => (package, "storage".to_owned()),
            None => (package, module.to_owned()),
        };
        let types = items.split(',').map(str::trim);
        for name in types.filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
        {
            if name.chars().any(|letter| letter.is_ascii_lowercase()) {
                names.entry(name.to_owned()).or_default().insert(origin.clone());
            }
        }
    }
}

#[test]
fn no_two_public_types_have_one_name() {
    let mut names = BTreeMap::new();
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (package, source) in [("tidegate", "src"), ("core", "../tidegate-core/src")] {
        for entry in fs::read_dir(library.join(source)).expect("the sources") {
            let path = entry.expect("an entry").path().join("mod.rs");
            let module = path.parent().and_then(Path::file_name).expect("a folder");
            if let Ok(text) = fs::read_to_string(&path) {
                collect(&mut names, (package, &module.to_string_lossy()), &text);
            }
        }
    }
    assert!(names.len() > 100, "the sources were read: {}", names.len());
    let twice: Vec<_> = names.iter().filter(|(_, origins)| origins.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

#[test]
fn the_front_page_lists_every_module() {
    let front = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    let front = front.expect("the crate's root");
    let (page, code) = front.split_once("\npub use").expect("declarations after the page");
    let code = format!("pub use{code}");
    let mut modules: Vec<&str> =
        code.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    for list in code.split("pub use tidegate_core::{").skip(1) {
        modules.extend(list.split('}').next().unwrap_or_default().split(',').map(str::trim));
    }
    assert!(modules.len() > 15, "{modules:?}");
    for module in modules {
        assert!(page.contains(&format!("`{module}`")), "the front page does not list {module}");
    }
}
