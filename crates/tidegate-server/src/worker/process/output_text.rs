use crate::worker::OutputSink;
use tidegate::task::OutputStream;

impl OutputSink {
    /// What was kept of one stream so far.
    #[must_use]
    pub fn text(&self, stream: OutputStream) -> String {
        let (chunks, _, _) = self.log().after(0);
        let of_it = chunks.into_iter().filter(|chunk| chunk.stream == stream);
        of_it.map(|chunk| chunk.text).collect()
    }
}
