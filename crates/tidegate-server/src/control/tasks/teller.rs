use super::position::Position;
use crate::manager::TaskView;
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate::task::{OutputChunk, TaskStatus};

/// Writes the events of one watcher, and knows what it was told.
#[derive(Debug, Default)]
pub struct Teller {
    position: Position,
    told: Option<Standing>,
}

/// What of a task's status is worth another event when it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    status: TaskStatus,
    attempt: u32,
    cancel_asked: bool,
    position: Option<u64>,
    /// In whole seconds: nobody can use a finer one.
    estimate_s: Option<u64>,
}

// === impl Teller ===

impl Teller {
    /// For a watcher that has seen so much.
    pub fn after(position: Position) -> Self {
        Self { position, told: None }
    }

    /// Where the task stands.
    pub fn status(&mut self, view: &TaskView) -> Bytes {
        self.enter(view.attempt);
        self.told = Some(Standing::of(view));
        self.event("status", &json!(view))
    }

    /// The same, if it is worth telling after what the watcher was told.
    pub fn status_if_moved(&mut self, view: &TaskView) -> Option<Bytes> {
        (self.told != Some(Standing::of(view))).then(|| self.status(view))
    }

    /// What an attempt has just written; `None` when a later one has begun.
    pub fn output(&mut self, attempt: u32, chunk: &OutputChunk) -> Option<Bytes> {
        if attempt < self.position.attempt {
            return None;
        }
        self.enter(attempt);
        self.position.add(chunk);
        let (stream, text) = (chunk.stream, &chunk.text);
        let told = json!({ "attempt": attempt, "stream": stream, "text": text });
        Some(self.event("output", &told))
    }

    /// What of all that an attempt has written the watcher has not seen.
    pub fn rest(&mut self, attempt: u32, chunks: Vec<OutputChunk>) -> Vec<Bytes> {
        let rest = self.position.rest_of(attempt, chunks);
        rest.iter().filter_map(|chunk| self.output(attempt, chunk)).collect()
    }

    /// The watcher was too slow for so many: whatever it was told of the status may be old.
    pub fn missed(&mut self, count: u64) -> Bytes {
        self.told = None;
        self.event("missed", &json!({ "count": count }))
    }

    fn enter(&mut self, attempt: u32) {
        if attempt > self.position.attempt {
            self.position = Position { attempt, ..Position::default() };
        }
    }

    fn event(&self, name: &str, data: &Value) -> Bytes {
        let id = self.position;
        // JSON has no line breaks of its own, and so it is one line.
        Bytes::from(format!("event: {name}\nid: {id}\ndata: {data}\n\n"))
    }
}

// === impl Standing ===

impl Standing {
    fn of(view: &TaskView) -> Self {
        Self {
            status: view.status,
            attempt: view.attempt,
            cancel_asked: view.cancel_asked,
            position: view.queue_position,
            estimate_s: view.estimated_wait_ms.map(|wait_ms| wait_ms / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::double::view;
    use tidegate::task::OutputStream;

    fn out(text: &str) -> OutputChunk {
        OutputChunk { stream: OutputStream::Stdout, text: text.to_owned() }
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_named_has_an_id_and_one_line_of_data() {
        let mut teller = Teller::default();
        let event = teller.output(1, &out("a\nb\r\n")).unwrap();
        assert_eq!(
            text(&event),
            "event: output\nid: 1.5.0\n\
             data: {\"attempt\":1,\"stream\":\"stdout\",\"text\":\"a\\nb\\r\\n\"}\n\n"
        );
        assert!(
            text(&teller.missed(7)).starts_with("event: missed\nid: 1.5.0\ndata: {\"count\":7}")
        );
    }

    #[test]
    fn a_new_attempt_starts_again_and_what_an_old_one_says_late_is_left_out() {
        let mut teller = Teller::default();
        assert!(teller.output(1, &out("one")).is_some());
        assert!(text(&teller.output(2, &out("x")).unwrap()).contains("id: 2.1.0\n"));
        assert!(teller.output(1, &out("late")).is_none());
        let mut again = Teller::after("2.1.0".parse().unwrap());
        let rest = again.rest(2, vec![out("x"), out("yz")]);
        assert_eq!(rest.len(), 1);
        assert!(text(&rest[0]).contains("id: 2.3.0\n") && text(&rest[0]).contains("\"yz\""));
    }

    #[test]
    fn a_queued_task_is_told_again_only_when_it_moved() {
        let mut teller = Teller::default();
        let mut queued = view("a");
        (queued.queue_position, queued.estimated_wait_ms) = (Some(4), Some(9_900));
        teller.status(&queued);
        (queued.queue_age_ms, queued.estimated_wait_ms) = (Some(1_000), Some(9_100));
        assert_eq!(
            teller.status_if_moved(&queued),
            None,
            "age alone is no news, nor less than 1 s"
        );
        queued.estimated_wait_ms = Some(8_900);
        assert!(teller.status_if_moved(&queued).is_some());
        queued.queue_position = Some(3);
        assert!(teller.status_if_moved(&queued).is_some());
        assert_eq!(teller.status_if_moved(&queued), None);
    }
}
