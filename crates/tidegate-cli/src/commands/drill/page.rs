use crate::failure::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use tidegate_sim::report::{Report, html};

/// HTML file of the report. It is opened before the drill, so that a wrong path fails early.
pub struct Page<'a> {
    path: &'a Path,
    /// The file is new: it is deleted if no report is written.
    is_new: bool,
}

// === impl Page ===

impl<'a> Page<'a> {
    /// Opens the file without changing it; fails if it can't be written.
    pub fn open(path: &'a Path) -> Result<Self, Failure> {
        let is_new = !path.exists();
        OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
            let path = path.display();
            Failure::Usage(format!("--html: can't write {path}: {error}; name another file"))
        })?;
        Ok(Self { path, is_new })
    }

    pub fn write(mut self, report: &Report) -> Result<(), Failure> {
        let path = self.path.display();
        fs::write(self.path, html::page(report))
            .map_err(|error| Failure::Runtime(format!("can't write {path}: {error}")))?;
        self.is_new = false;
        // A closed standard error is not a failure.
        let _ = writeln!(io::stderr(), "tidegate: the report is in {path}");
        Ok(())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // An empty file that can't be deleted stays.
            let _ = fs::remove_file(self.path);
        }
    }
}
