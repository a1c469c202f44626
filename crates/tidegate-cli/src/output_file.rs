use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file for writing. An existing file is an error, or with `force` overwritten.
///
/// One system call decides, so that a file that another process creates meanwhile is not overwritten.
pub fn create(path: &Path, force: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    options.open(path)
}
