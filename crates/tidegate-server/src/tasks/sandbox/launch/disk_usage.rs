use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

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
/// Counts the blocks of a file, not its length: holes are free. Deleted files that are still open are not counted;
/// the kernel's limit on the length of a file bounds them.
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
}
