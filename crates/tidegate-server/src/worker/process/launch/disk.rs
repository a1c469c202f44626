use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// What lies in some folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) bytes: u64,
    pub(super) files: u32,
    /// So deep that it could not be followed. Nobody nests folders like that by mistake but a loop.
    pub(super) too_deep: bool,
}

/// Counts what is in the folders, until there is more than so many files and folders.
///
/// What a file takes on the disk counts, not how long it says it is: holes are free. What was deleted while it is
/// open is not seen; the kernel's limit on the length of a file bounds it.
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
        // What went away in the meantime takes nothing.
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
        assert_eq!(
            used(std::slice::from_ref(&folder), 3).files,
            4,
            "it stops when there are too many"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
