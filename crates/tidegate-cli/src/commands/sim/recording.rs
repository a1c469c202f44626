use super::flags::SimFlags;
use crate::failure::Failure;
use crate::terminal::{print, report_json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;
use tidegate_sim::replay::{LINE_BYTES_MAX, Reader, Recording, Setting, compare};

/// `tidegate sim --replay FILE --set limits.low=100`.
pub fn run(path: &Path, flags: &SimFlags) -> Result<ExitCode, Failure> {
    if let Some(twice) = set_twice(&flags.set) {
        return Err(Failure::Usage(format!("{twice}: set twice")));
    }
    let recording = read(path)?;
    let comparison = compare(&recording, &flags.set, flags.seed.unwrap_or(1));
    if flags.json {
        print(&report_json(&comparison)?);
    } else {
        print(&comparison.to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn set_twice(settings: &[Setting]) -> Option<&Setting> {
    let mut later = settings.iter().enumerate().skip(1);
    let found = later.find(|(at, setting)| {
        settings[..*at].iter().any(|before| before.is_of_the_same_as(setting))
    });
    found.map(|(_, setting)| setting)
}

/// Reads line by line: a recording may be larger than memory.
fn read(path: &Path) -> Result<Recording, Failure> {
    let unreadable = |error| Failure::Runtime(format!("can't read {}: {error}", path.display()));
    let invalid = |error| Failure::Usage(format!("{}, {error}", path.display()));
    let mut file = BufReader::with_capacity(256 * 1024, File::open(path).map_err(unreadable)?);
    let mut reader = Reader::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than the limit and the newline, so that the parser refuses a line that is too long.
        let most = LINE_BYTES_MAX as u64 + 2;
        file.by_ref().take(most).read_until(b'\n', &mut line).map_err(unreadable)?;
        match line.strip_suffix(b"\n") {
            Some(whole) => reader.line(whole).map_err(invalid)?,
            // Too long, not cut off at the end of the file.
            None if line.len() as u64 == most => reader.line(&line).map_err(invalid)?,
            None => break,
        }
    }
    reader.rest(&line).map_err(invalid)?;
    reader.finish().map_err(invalid)
}
