use crate::failure::Failure;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use tidegate_sim::report::{Report, html};

/// Where the report is to be written as a page. That it can be is known before there is anything to write.
pub struct Page<'a> {
    path: &'a Path,
    /// There was no such file: if nothing comes of it, there is none afterwards either.
    is_new: bool,
}

// === impl Page ===

impl<'a> Page<'a> {
    /// Fails where nothing can be written. What is there stays as it is.
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
        // Whoever closed our output did not ask us to fail.
        let _ = writeln!(io::stderr(), "tidegate: the report is in {path}");
        Ok(())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // An empty file that can't be deleted does no harm.
            let _ = fs::remove_file(self.path);
        }
    }
}
