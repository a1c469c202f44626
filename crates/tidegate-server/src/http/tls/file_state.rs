use crate::config::TlsFiles;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// States of the certificate, the key and the authorities of a port, by which a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesState([FileState; 3]);

/// Modification time, in seconds and nanoseconds, size and inode of a file. `None` while it can't be read.
type FileState = Option<(i64, i64, u64, u64)>;

// === impl FilesState ===

impl FilesState {
    /// The states now.
    pub fn of(files: &TlsFiles) -> Self {
        let TlsFiles { cert, key, client_ca } = files;
        Self([state(cert), state(key), client_ca.as_deref().and_then(state)])
    }
}

fn state(path: &Path) -> FileState {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.mtime(), metadata.mtime_nsec(), metadata.size(), metadata.ino()))
}
