use tidegate::task::OutputChunk;

/// Output of an attempt, up to a limit.
pub(super) struct OutputBuffer {
    chunks: Vec<OutputChunk>,
    bytes: usize,
    bytes_max: usize,
    cut: bool,
}

// === impl OutputBuffer ===

impl OutputBuffer {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { chunks: Vec::new(), bytes: 0, bytes_max, cut: false }
    }

    /// Appends new output, and returns the part that fits.
    pub(super) fn append(&mut self, new: &[OutputChunk]) -> Vec<OutputChunk> {
        let mut appended = Vec::new();
        for chunk in new {
            if self.bytes + chunk.text.len() > self.bytes_max {
                self.cut = true;
                break;
            }
            self.bytes += chunk.text.len();
            appended.push(chunk.clone());
            match self.chunks.last_mut() {
                Some(last) if last.stream == chunk.stream => last.text.push_str(&chunk.text),
                _ => self.chunks.push(chunk.clone()),
            }
        }
        appended
    }

    /// The limit cut the output.
    pub(super) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(super) fn into_chunks(self) -> Vec<OutputChunk> {
        self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::task::OutputStream;

    #[test]
    fn output_beyond_the_limit_is_cut_and_chunks_of_a_stream_are_joined() {
        let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
        let (out, err) = (OutputStream::Stdout, OutputStream::Stderr);
        let mut buffer = OutputBuffer::new(4);
        assert_eq!(buffer.append(&[chunk(out, "a"), chunk(out, "b"), chunk(err, "c")]).len(), 3);
        assert!(!buffer.is_cut());
        assert_eq!(buffer.append(&[chunk(out, "de")]), []);
        assert!(buffer.is_cut());
        assert_eq!(buffer.into_chunks(), [chunk(out, "ab"), chunk(err, "c")]);
    }
}
