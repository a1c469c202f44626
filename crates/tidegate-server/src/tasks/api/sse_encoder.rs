use super::position::Position;
use crate::tasks::manager::{ProgressView, TaskView};
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate::task::{OutputChunk, TaskStatus};

/// Encoder of one watcher's server-sent events. Remembers the last status that it sent.
#[derive(Debug, Default)]
pub struct SseEncoder {
    position: Position,
    last: Option<StatusKey>,
}

/// Parts of a task's status whose change is worth another event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatusKey {
    status: TaskStatus,
    attempt: u32,
    cancel_requested: bool,
    position: Option<u64>,
    /// Estimated wait in whole seconds.
    estimate_s: Option<u64>,
}

// === impl SseEncoder ===

impl SseEncoder {
    /// An encoder for a watcher at this position.
    pub fn after(position: Position) -> Self {
        Self { position, last: None }
    }

    /// A status event.
    pub fn status(&mut self, view: &TaskView) -> Bytes {
        self.enter(view.attempt);
        self.last = Some(StatusKey::of(view));
        self.event("status", &json!(view))
    }

    /// A status event, if the status has changed since the last.
    pub fn status_if_changed(&mut self, view: &TaskView) -> Option<Bytes> {
        (self.last != Some(StatusKey::of(view))).then(|| self.status(view))
    }

    /// An output event; `None` when a later attempt has begun.
    pub fn output(&mut self, attempt: u32, chunk: &OutputChunk) -> Option<Bytes> {
        if attempt < self.position.attempt {
            return None;
        }
        self.enter(attempt);
        self.position.add(chunk);
        let (stream, text) = (chunk.stream, &chunk.text);
        let data = json!({ "attempt": attempt, "stream": stream, "text": text });
        Some(self.event("output", &data))
    }

    /// A progress event; `None` when a later attempt has begun.
    pub fn progress(&mut self, attempt: u32, progress: &ProgressView) -> Option<Bytes> {
        if attempt < self.position.attempt {
            return None;
        }
        self.enter(attempt);
        let mut data = json!(progress);
        data["attempt"] = json!(attempt);
        Some(self.event("progress", &data))
    }

    /// Output events for the part of an attempt's whole output that the watcher has not seen.
    pub fn rest(&mut self, attempt: u32, chunks: Vec<OutputChunk>) -> Vec<Bytes> {
        let rest = self.position.rest_of(attempt, chunks);
        rest.iter().filter_map(|chunk| self.output(attempt, chunk)).collect()
    }

    /// An event for a watcher that was too slow for `count` changes; its last status may be outdated.
    pub fn missed(&mut self, count: u64) -> Bytes {
        self.last = None;
        self.event("missed", &json!({ "count": count }))
    }

    fn enter(&mut self, attempt: u32) {
        if attempt > self.position.attempt {
            self.position = Position { attempt, ..Position::default() };
        }
    }

    fn event(&self, name: &str, data: &Value) -> Bytes {
        let id = self.position;
        // Compact JSON has no line breaks, so the data is one line.
        Bytes::from(format!("event: {name}\nid: {id}\ndata: {data}\n\n"))
    }
}

// === impl StatusKey ===

impl StatusKey {
    fn of(view: &TaskView) -> Self {
        Self {
            status: view.status,
            attempt: view.attempt,
            cancel_requested: view.cancel_requested,
            position: view.queue_position,
            estimate_s: view.estimated_wait_ms.map(|wait_ms| wait_ms / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::fake_manager::view;
    use tidegate::task::OutputStream;

    fn out(text: &str) -> OutputChunk {
        OutputChunk { stream: OutputStream::Stdout, text: text.to_owned() }
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_named_has_an_id_and_one_line_of_data() {
        let mut sse_encoder = SseEncoder::default();
        let event = sse_encoder.output(1, &out("a\nb\r\n")).unwrap();
        assert_eq!(
            text(&event),
            "event: output\nid: 1.5.0\n\
             data: {\"attempt\":1,\"stream\":\"stdout\",\"text\":\"a\\nb\\r\\n\"}\n\n"
        );
        assert!(
            text(&sse_encoder.missed(7))
                .starts_with("event: missed\nid: 1.5.0\ndata: {\"count\":7}")
        );
    }

    #[test]
    fn a_new_attempt_starts_again_and_late_output_of_an_old_one_is_left_out() {
        let mut sse_encoder = SseEncoder::default();
        assert!(sse_encoder.output(1, &out("one")).is_some());
        assert!(text(&sse_encoder.output(2, &out("x")).unwrap()).contains("id: 2.1.0\n"));
        assert!(sse_encoder.output(1, &out("late")).is_none());
        let mut again = SseEncoder::after("2.1.0".parse().unwrap());
        let rest = again.rest(2, vec![out("x"), out("yz")]);
        assert_eq!(rest.len(), 1);
        assert!(text(&rest[0]).contains("id: 2.3.0\n") && text(&rest[0]).contains("\"yz\""));
    }

    #[test]
    fn a_queued_task_is_sent_again_only_when_it_moved() {
        let mut sse_encoder = SseEncoder::default();
        let mut queued = view("a");
        (queued.queue_position, queued.estimated_wait_ms) = (Some(4), Some(9_900));
        sse_encoder.status(&queued);
        (queued.queue_age_ms, queued.estimated_wait_ms) = (Some(1_000), Some(9_100));
        assert_eq!(
            sse_encoder.status_if_changed(&queued),
            None,
            "age alone is no news, nor less than 1 s"
        );
        queued.estimated_wait_ms = Some(8_900);
        assert!(sse_encoder.status_if_changed(&queued).is_some());
        queued.queue_position = Some(3);
        assert!(sse_encoder.status_if_changed(&queued).is_some());
        assert_eq!(sse_encoder.status_if_changed(&queued), None);
    }
}
