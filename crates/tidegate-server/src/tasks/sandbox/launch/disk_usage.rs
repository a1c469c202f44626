use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Device and inode of a file.
pub(super) type FileId = (u64, u64);

/// Disk usage of some folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) bytes: u64,
    pub(super) files: u32,
    /// The nesting is deeper than a path can be long; only a loop does that.
    pub(super) too_deep: bool,
}

/// Counts bytes, files and folders in `folders`, up to `files_max` entries.
///
/// Counts the blocks of a file, not its length: holes are free. [`unlinked`] counts deleted files that are still
/// open.
pub(super) fn used(folders: &[PathBuf], files_max: u32) -> Used {
    let mut used = Used::default();
    let mut next: Vec<PathBuf> = folders.to_vec();
    while let Some(folder) = next.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                used.too_deep |= error.kind() == io::ErrorKind::InvalidFilename;
                continue;
            }
        };
        // An entry that was removed meanwhile takes nothing.
        for entry in entries.flatten() {
            used.files += 1;
            if used.files > files_max {
                return used;
            }
            let Ok(metadata) = entry.metadata() else { continue };
            used.bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                next.push(entry.path());
            }
        }
    }
    used
}

/// Counts deleted files that some process has open, each once and except for those in `not`, up to `files_max`.
///
/// A file that was closed after it was mapped, or that waits in a socket, is not found.
pub(super) fn unlinked(
    pids: impl Iterator<Item = i32>,
    not: &BTreeSet<FileId>,
    files_max: u32,
) -> Used {
    let (mut used, mut seen) = (Used::default(), BTreeSet::new());
    for (file, bytes) in pids.flat_map(|pid| open_unlinked(&pid.to_string())) {
        if used.files <= files_max && !not.contains(&file) && seen.insert(file) {
            used.files += 1;
            used.bytes += bytes;
        }
    }
    used
}

/// Deleted files that this process has open.
pub(super) fn own_unlinked() -> BTreeSet<FileId> {
    open_unlinked("self").map(|(file, _)| file).collect()
}

/// Deleted files that a process has open, and their bytes. Empty when it is gone.
fn open_unlinked(process: &str) -> impl Iterator<Item = (FileId, u64)> + use<> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| {
        // Follows the link to the open file itself, which has no path.
        let metadata = fs::metadata(descriptor.path()).ok()?;
        let found = metadata.is_file() && metadata.nlink() == 0;
        found.then(|| ((metadata.dev(), metadata.ino()), metadata.blocks() * 512))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_files_count_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("tidegate-disk-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::write(folder.join("a/b/c"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", folder.join("usr")).unwrap();
        let sparse = fs::File::create(folder.join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let all = used(std::slice::from_ref(&folder), 100);
        assert_eq!(all.files, 5);
        assert!((100_000..200_000).contains(&all.bytes), "{all:?}");
        assert_eq!(used(std::slice::from_ref(&folder), 3).files, 4, "it stops at the limit");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_deleted_file_counts_once_while_it_is_open() {
        let path = std::env::temp_dir().join(format!("tidegate-unlinked-{}", std::process::id()));
        let pid = std::process::id().cast_signed();
        fs::write(&path, vec![1; 100_000]).unwrap();
        let (first, second) = (fs::File::open(&path).unwrap(), fs::File::open(&path).unwrap());
        let metadata = first.metadata().unwrap();
        let id = (metadata.dev(), metadata.ino());
        // Other tests of this process may have deleted files open, too.
        let others = || own_unlinked().into_iter().filter(|file| *file != id).collect();
        let count = |not: &BTreeSet<FileId>| unlinked([pid, pid].into_iter(), not, 100);
        assert!(!own_unlinked().contains(&id), "it is not deleted yet");
        fs::remove_file(path).unwrap();
        assert!(own_unlinked().contains(&id));
        let used = count(&others());
        assert!(used.bytes >= 100_000 && used.files >= 1, "{used:?}");
        let own = own_unlinked();
        assert!(count(&own).bytes < 100_000, "what is excepted does not count");
        assert!(used.bytes < 200_000 || used.files > 1, "once: {used:?}");
        drop((first, second));
        assert!(!own_unlinked().contains(&id));
    }
}
