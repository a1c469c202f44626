use crate::tasks::execution::{ExecutionView, floor_char};
use crate::tasks::session::{ExecutionUpdate, Interest};
use std::sync::Arc;
use tidegate::task::{ExecutionKey, OutputChunk};
use tokio::sync::Notify;

/// Newest known state of an execution at a worker, and the output that its attempt has not yet taken.
pub(super) struct Mirror {
    /// Wakes the attempt.
    pub(super) changed: Arc<Notify>,
    view: Option<ExecutionView>,
    /// Output from `base` on.
    output: Vec<OutputChunk>,
    base: u64,
    next: u64,
    /// Rises with each update.
    version: u64,
    /// Version that the attempt has.
    taken: u64,
    fence: Option<u64>,
    unknown: bool,
    /// The dispatch is unanswered: the worker need not know the execution yet.
    dispatching: bool,
}

/// Content of a mirror for its attempt.
pub(super) enum News {
    /// New state or output.
    View(Box<ExecutionView>),
    /// The worker does not know the execution.
    Unknown,
    /// Nothing new.
    Nothing,
}

// === impl Mirror ===

impl Mirror {
    /// The mirror of an execution of which the attempt has the output up to `after`.
    pub(super) fn new(fence: Option<u64>, after: u64) -> Self {
        Self {
            changed: Arc::new(Notify::new()),
            view: None,
            output: Vec::new(),
            base: after,
            next: after,
            version: 0,
            taken: 0,
            fence,
            unknown: false,
            dispatching: false,
        }
    }

    /// The mirror of an execution that is being dispatched.
    pub(super) fn dispatching() -> Self {
        Self { dispatching: true, ..Self::new(None, 0) }
    }

    /// The worker has accepted the dispatch with this fence, or its answer will not come.
    pub(super) fn dispatched(&mut self, fence: Option<u64>) {
        self.dispatching = false;
        self.fence = fence.or(self.fence);
    }

    /// Takes in an update. False when output is missing before it: then nothing of it is used, and the worker has
    /// to send it again.
    pub(super) fn update(&mut self, update: ExecutionUpdate) -> bool {
        let ExecutionUpdate { after, mut view } = update;
        if after > self.next {
            return false;
        }
        let output = std::mem::take(&mut view.output);
        if view.next > self.next {
            append(&mut self.output, output, self.next - after);
            self.next = view.next;
        }
        // What is left of an earlier connection may come after the end, which stands.
        if self.view.as_ref().is_some_and(|view| view.ending().is_some()) {
            return true;
        }
        // Progress has a path of its own.
        view.progress = None;
        self.unknown = false;
        self.fence = Some(view.fence);
        self.view = Some(view);
        self.version += 1;
        self.changed.notify_one();
        true
    }

    /// The worker does not know the execution. Of no meaning while that is being dispatched: a renewal of leases
    /// may overtake the dispatch.
    pub(super) fn set_unknown(&mut self) {
        if !self.dispatching {
            self.unknown = true;
            self.changed.notify_one();
        }
    }

    /// A new session has begun: its worker may know more.
    pub(super) fn begin_session(&mut self) {
        self.unknown = false;
    }

    /// Takes the news of an attempt that has the output up to `after`.
    pub(super) fn take(&mut self, after: u64) -> News {
        if self.unknown {
            return News::Unknown;
        }
        if self.version == self.taken && self.next <= after {
            return News::Nothing;
        }
        self.taken = self.version;
        match self.view(after) {
            Some(view) => News::View(Box::new(view)),
            None => News::Nothing,
        }
    }

    /// State with the output after an offset; `None` before the first update.
    pub(super) fn view(&mut self, after: u64) -> Option<ExecutionView> {
        let skipped = after.saturating_sub(self.base);
        let mut output = Vec::new();
        append(&mut output, std::mem::take(&mut self.output), skipped);
        self.base = after.max(self.base);
        self.output.clone_from(&output);
        let view = self.view.as_ref()?;
        Some(ExecutionView { output, next: self.next, ..view.clone() })
    }

    /// Interest of the attempt, for the worker.
    pub(super) fn interest(&self, key: &ExecutionKey) -> Interest {
        Interest { id: key.to_string(), fence: self.fence, after: self.next }
    }

    /// True when the worker is to be asked for the execution: not before it was dispatched.
    pub(super) fn is_of_interest(&self) -> bool {
        !self.dispatching
    }
}

/// Appends output without its first `skip` bytes.
fn append(to: &mut Vec<OutputChunk>, chunks: Vec<OutputChunk>, skip: u64) {
    let mut skip = usize::try_from(skip).unwrap_or(usize::MAX);
    for mut chunk in chunks {
        if skip >= chunk.text.len() {
            skip -= chunk.text.len();
            continue;
        }
        let cut = floor_char(&chunk.text, skip);
        skip = 0;
        chunk.text.drain(..cut);
        to.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::task::OutputStream;

    fn update(after: u64, text: &str, state: &str) -> ExecutionUpdate {
        let json = serde_json::json!({
            "id": "a@1", "eval_id": "a", "attempt": 1, "fence": 7, "state": state,
            "next": after + text.len() as u64,
        });
        let mut view: ExecutionView = serde_json::from_value(json).unwrap();
        view.output = vec![OutputChunk { stream: OutputStream::Stdout, text: text.to_owned() }];
        ExecutionUpdate { after, view }
    }

    fn text(news: News) -> Option<(String, u64)> {
        match news {
            News::View(view) => {
                Some((view.output.iter().map(|chunk| chunk.text.as_str()).collect(), view.next))
            }
            News::Unknown | News::Nothing => None,
        }
    }

    #[test]
    fn an_attempt_gets_each_byte_once_whatever_is_sent_twice() {
        let mut mirror = Mirror::new(None, 0);
        assert!(text(mirror.take(0)).is_none());
        assert!(mirror.update(update(0, "abc", "running")));
        assert!(mirror.update(update(0, "abcde", "running")));
        assert!(mirror.update(update(1, "bcd", "running")), "an older one takes nothing back");
        assert_eq!(text(mirror.take(0)), Some(("abcde".to_owned(), 5)));
        assert!(text(mirror.take(5)).is_none(), "nothing new");
        assert!(mirror.update(update(5, "f", "succeeded")));
        assert_eq!(text(mirror.take(5)), Some(("f".to_owned(), 6)));
    }

    #[test]
    fn output_that_the_attempt_lost_is_there_until_it_has_taken_it() {
        let mut mirror = Mirror::new(None, 0);
        mirror.update(update(0, "abc", "running"));
        assert_eq!(text(mirror.take(0)), Some(("abc".to_owned(), 3)));
        assert_eq!(text(mirror.take(0)), Some(("abc".to_owned(), 3)), "it asks again");
        mirror.update(update(3, "d", "running"));
        assert_eq!(text(mirror.take(3)), Some(("d".to_owned(), 4)));
        assert_eq!(mirror.interest(&"a@1".parse().unwrap()).after, 4);
    }

    #[test]
    fn a_gap_is_refused_with_its_end() {
        let mut mirror = Mirror::new(None, 2);
        assert!(!mirror.update(update(3, "x", "succeeded")));
        assert!(text(mirror.take(2)).is_none());
        assert!(mirror.update(update(2, "yx", "succeeded")));
        assert_eq!(text(mirror.take(2)), Some(("yx".to_owned(), 4)));
    }

    #[test]
    fn an_end_stands_whatever_comes_late() {
        let mut mirror = Mirror::new(None, 0);
        mirror.update(update(0, "abc", "succeeded"));
        assert!(mirror.update(update(0, "ab", "running")), "of the connection before");
        let News::View(view) = mirror.take(0) else { panic!("the end is news") };
        assert!(view.ending().is_some(), "{view:?}");
    }

    #[test]
    fn a_renewal_that_overtakes_the_dispatch_makes_nothing_unknown() {
        let mut mirror = Mirror::dispatching();
        assert!(!mirror.is_of_interest());
        mirror.set_unknown();
        mirror.dispatched(Some(7));
        assert!(matches!(mirror.take(0), News::Nothing));
        assert!(mirror.is_of_interest());
        mirror.set_unknown();
        assert!(matches!(mirror.take(0), News::Unknown), "a worker that has restarted");
    }

    #[test]
    fn an_unknown_execution_stays_unknown_until_the_next_session() {
        let mut mirror = Mirror::new(Some(7), 0);
        mirror.set_unknown();
        assert!(matches!(mirror.take(0), News::Unknown));
        mirror.begin_session();
        assert!(matches!(mirror.take(0), News::Nothing));
    }
}
