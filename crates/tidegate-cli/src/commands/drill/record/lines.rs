use std::time::Duration;
use tidegate::decision_log::{Header, Line};

/// Longest line of a recording.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Splitter of a recording into whole lines that counts decisions.
#[derive(Debug, Default)]
pub struct DecisionLines {
    pub decisions: u64,
    pub lost: u64,
    /// Reason for the end, as the gateway reports it.
    pub end: Option<String>,
    seen: u64,
    /// Received bytes; `whole` is the end of the last whole line.
    buffer: Vec<u8>,
    whole: usize,
}

// === impl DecisionLines ===

impl DecisionLines {
    /// Appends data and returns the lines that it completes.
    ///
    /// # Errors
    ///
    /// When the data is not a recording.
    pub fn take(&mut self, data: &[u8]) -> Result<&[u8], String> {
        self.buffer.drain(..self.whole);
        let begun = self.buffer.len();
        self.buffer.extend_from_slice(data);
        let end = self.buffer[begun..].iter().rposition(|byte| *byte == b'\n');
        self.whole = end.map_or(0, |end| begun + end + 1);
        if self.buffer.len() - self.whole > LINE_BYTES_MAX {
            return Err("a line has no end".to_owned());
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
        if self.seen == 1 {
            return Header::decode(line).map(|_| ()).map_err(|error| error.to_string());
        }
        if Line::is_decision(line) {
            self.decisions += 1;
            return Ok(());
        }
        match Line::decode(line).map_err(|error| error.to_string())? {
            Line::Decision(_) => self.decisions += 1,
            Line::Lost(lost) => self.lost += lost,
            Line::End(footer) => self.end = Some(footer.end.into_owned()),
        }
        Ok(())
    }

    /// Text beside the progress bar.
    pub fn progress(&self, elapsed: Duration) -> String {
        let per_s = self.decisions as f64 / elapsed.as_secs_f64().max(0.001);
        format!("{} decisions, {per_s:.0}/s, {} lost", self.decisions, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "{\"format\":\"tidegate-decisions\",\"version\":1,\"limits\":{\"global\":9,\
        \"high\":4,\"normal\":3,\"low\":2,\"critical_reserve\":1},\"sharing\":\"strict\"}\n";

    #[test]
    fn lines_are_whole_wherever_they_are_cut() {
        let text = format!(
            "{HEAD}{{\"at_us\":1,\"x\":2}}\n{{\"lost\":4}}\n{{\"at_us\":2}}\n{{\"end\":\"time\",\"lost\":4}}\n"
        );
        for size in [1, 2, 7, 30, 1_000] {
            let mut lines = DecisionLines::default();
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
    fn data_that_is_no_recording_is_refused() {
        for (text, says) in [("<html>\n", "not a recording"), ("{\"a\":1}\n", "missing field")] {
            assert!(DecisionLines::default().take(text.as_bytes()).unwrap_err().contains(says));
        }
        let endless = vec![b'x'; LINE_BYTES_MAX + 1];
        assert!(DecisionLines::default().take(&endless).unwrap_err().contains("has no end"));
    }
}
