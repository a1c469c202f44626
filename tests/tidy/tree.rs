//! Which files there are.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> PathBuf {
    let up = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    up.canonicalize().expect("the package lies two folders below the repository")
}

/// A path as it is written in a message: relative to the repository.
pub fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Every file that could be tracked: all but version control and what builds leave behind.
pub fn all_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    files.sort();
    files
}

/// Every Rust file, tests and examples included.
pub fn rust_files() -> Vec<PathBuf> {
    all_files().into_iter().filter(|path| has_extension(path, "rs")).collect()
}

/// The Rust files of the crates themselves.
pub fn shipped_rust_files() -> Vec<PathBuf> {
    let in_src = |path: &PathBuf| {
        let name = name(path);
        name.starts_with("crates/") && name.contains("/src/")
    };
    rust_files().into_iter().filter(in_src).collect()
}

/// The Markdown files of the top level and of `docs/`.
pub fn documents() -> Vec<PathBuf> {
    let is_document = |path: &PathBuf| {
        let name = name(path);
        has_extension(path, "md") && (name.starts_with("docs/") || !name.contains('/'))
    };
    all_files().into_iter().filter(is_document).collect()
}

/// The folders under `crates/`, in order.
pub fn crate_names() -> Vec<String> {
    let entries = entries(&root().join("crates"));
    let mut names: Vec<_> =
        entries.iter().filter(|path| path.is_dir()).map(|path| last(path)).collect();
    names.sort();
    names
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_symlink() || is_left_behind(&path) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn is_left_behind(path: &Path) -> bool {
    let name = last(path);
    let build = path.is_dir() && (name == "target" || name.starts_with("target-"));
    build || name == ".git" || name == "__pycache__"
}

/// A file that another test removes while this one looks is no error: it is simply not there.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn last(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
