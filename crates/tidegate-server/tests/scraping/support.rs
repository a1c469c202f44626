use std::path::{Path, PathBuf};
use tidegate::routing::LoadReport;

/// Every page, by its file.
pub fn pages() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/load");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 13, "the pages are gone");
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

pub fn page(name: &str) -> String {
    let found = pages().into_iter().find(|(path, _)| path.file_stem().unwrap() == name);
    found.unwrap_or_else(|| panic!("no page {name}.prom")).1
}

/// Blocks in use, blocks in all, running, waiting.
pub type Figures = (Option<u64>, Option<u64>, Option<u64>, Option<u64>);

pub fn figures(report: &LoadReport) -> Figures {
    (report.active_decode_blocks, report.kv_total_blocks, report.running, report.waiting)
}
