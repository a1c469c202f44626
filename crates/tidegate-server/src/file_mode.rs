//! The modes of new files and folders of this process.
//! Uses the file mode creation mask of the system.
//! Must not know which files there are.

use rustix::fs::Mode;
use rustix::process::umask;
use std::sync::OnceLock;

/// The mask with which the process was started, once it is changed.
static INHERITED: OnceLock<u32> = OnceLock::new();

/// Makes new files of this process 0600 and new folders 0700, whatever mask it was started with: stores have the
/// usage, the code and the output of others in them.
///
/// The mask belongs to the whole process, so this is called before the first thread starts. Tasks get the mask
/// that the process was started with.
pub fn close_new_files() {
    let was = umask(Mode::RWXG | Mode::RWXO);
    INHERITED.get_or_init(|| was.as_raw_mode());
}

/// The mask with which the process was started; `None` while it is still in force.
pub(crate) fn inherited() -> Option<u32> {
    INHERITED.get().copied()
}
