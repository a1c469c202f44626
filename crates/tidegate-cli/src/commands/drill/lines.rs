use serde_json::Value;
use std::time::Duration;

/// No line of a recording is longer. What has none for so long is no recording.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Cuts what comes into whole lines, and counts what they tell.
#[derive(Debug, Default)]
pub struct Lines {
    pub decisions: u64,
    pub lost: u64,
    /// How the gateway says that it ended.
    pub end: Option<String>,
    seen: u64,
    /// What was taken last, and from where on it is no whole line.
    buffer: Vec<u8>,
    whole: usize,
}

// === impl Lines ===

impl Lines {
    /// Takes what came, and gives all whole lines that were not given before.
    ///
    /// # Errors
    ///
    /// When it is no recording.
    pub fn take(&mut self, data: &[u8]) -> Result<&[u8], String> {
        self.buffer.drain(..self.whole);
        let begun = self.buffer.len();
        self.buffer.extend_from_slice(data);
        let end = self.buffer[begun..].iter().rposition(|byte| *byte == b'\n');
        self.whole = end.map_or(0, |end| begun + end + 1);
        if self.buffer.len() - self.whole > LINE_BYTES_MAX {
            return Err("it writes lines without an end".to_owned());
        }
        let lines = std::mem::take(&mut self.buffer);
        let counted = lines[..self.whole]
            .split_inclusive(|byte| *byte == b'\n')
            .try_for_each(|line| self.count(line));
        self.buffer = lines;
        counted?;
        Ok(&self.buffer[..self.whole])
    }

    fn count(&mut self, line: &[u8]) -> Result<(), String> {
        self.seen += 1;
        if line.starts_with(b"{\"at_us\":") && self.seen > 1 {
            self.decisions += 1;
            return Ok(());
        }
        let told: Value =
            serde_json::from_slice(line).map_err(|_| "it writes no JSON".to_owned())?;
        if self.seen == 1 {
            let is_ours = told["format"] == "tidegate-decisions";
            return is_ours.then_some(()).ok_or_else(|| "it writes something else".to_owned());
        }
        match told["end"].as_str() {
            // It has the sum of all before it.
            Some(end) => self.end = Some(end.to_owned()),
            None => self.lost += told["lost"].as_u64().unwrap_or(0),
        }
        Ok(())
    }

    /// As it stands beside a bar.
    pub fn progress(&self, elapsed: Duration) -> String {
        let per_s = self.decisions as f64 / elapsed.as_secs_f64().max(0.001);
        format!("{} decisions, {per_s:.0}/s, {} lost", self.decisions, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\":\"tidegate-decisions\",\"version\":1}\n";

    #[test]
    fn lines_are_whole_wherever_they_are_cut() {
        let text = format!(
            "{HEAD}{{\"at_us\":1,\"x\":2}}\n{{\"lost\":4}}\n{{\"at_us\":2}}\n{{\"end\":\"time\",\"lost\":4}}\n"
        );
        for size in [1, 2, 7, 30, 1_000] {
            let mut lines = Lines::default();
            let mut given = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                let whole = lines.take(piece).unwrap();
                assert!(whole.is_empty() || whole.ends_with(b"\n"));
                given.extend_from_slice(whole);
            }
            assert_eq!(given, text.as_bytes(), "in pieces of {size}");
            assert_eq!((lines.decisions, lines.lost, lines.end.as_deref()), (2, 4, Some("time")));
        }
    }

    #[test]
    fn what_is_no_recording_is_found_at_once() {
        for (text, says) in [("<html>\n", "no JSON"), ("{\"a\":1}\n", "something else")] {
            assert!(Lines::default().take(text.as_bytes()).unwrap_err().contains(says));
        }
        let endless = vec![b'x'; LINE_BYTES_MAX + 1];
        assert!(Lines::default().take(&endless).unwrap_err().contains("without an end"));
    }
}
