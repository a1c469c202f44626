//! The corpus of the fuzz targets, replayed without a fuzzer: every input that was ever of interest, once.

mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use targets::{TARGETS, Target};

/// A corpus is read by people: beyond this, `scripts/fuzz --merge` keeps those that add something.
const FILES_MAX: usize = 40;
const BYTES_MAX: u64 = 1 << 20;

/// The longest that one input may take: a thousand times what the slowest does.
const INPUT_TIME_MAX: Duration = Duration::from_secs(10);

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder);
    let read = read.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = read.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs a target on each of its inputs; returns the failures, and how many inputs the parser accepted and refused.
fn replay(target: &Target) -> (Vec<String>, [usize; 2]) {
    let (mut failures, mut counts) = (Vec::new(), [0, 0]);
    for path in entries(&corpus().join(target.name)) {
        let input = std::fs::read(&path).expect("a file of the corpus");
        let began = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
            Ok(accepted) => counts[usize::from(!accepted)] += 1,
            Err(_) => failures.push(format!("{}/{}", target.name, name(&path))),
        }
        if began.elapsed() > INPUT_TIME_MAX {
            failures.push(format!("{}/{}: {:?}", target.name, name(&path), began.elapsed()));
        }
    }
    (failures, counts)
}

#[test]
fn every_property_holds_for_the_corpus() {
    let (mut failures, mut idle) = (Vec::new(), Vec::new());
    for target in TARGETS {
        let (failed, [accepted, refused]) = replay(target);
        println!("{}: {accepted} inputs accepted, {refused} refused", target.name);
        failures.extend(failed);
        if accepted == 0 || refused == 0 {
            idle.push(target.name);
        }
    }
    assert!(failures.is_empty(), "these inputs break a property, as told above: {failures:#?}");
    assert!(idle.is_empty(), "add inputs that are accepted and some that are refused: {idle:?}");
}

#[test]
fn each_target_has_a_corpus_and_each_corpus_a_target() {
    let folders: BTreeSet<_> = entries(&corpus()).iter().map(|path| name(path)).collect();
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(folders, targets, "fuzz/corpus, and TARGETS in fuzz/targets/target.rs");
    assert_eq!(targets.len(), TARGETS.len(), "a name is given twice");
}

#[test]
fn the_corpus_stays_small() {
    let mut bytes = 0;
    for folder in entries(&corpus()) {
        let files = entries(&folder);
        assert!(files.len() <= FILES_MAX, "{}: {} files", folder.display(), files.len());
        bytes +=
            files.iter().filter_map(|file| file.metadata().ok()).map(|it| it.len()).sum::<u64>();
    }
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}
