use std::sync::Arc;
use tidegate::progress::Progress;
use tokio::sync::watch;

/// Receiver of an execution's progress. Cheap to clone; stores the newest progress alone.
#[derive(Clone, Debug)]
pub struct ProgressSink {
    newest: Arc<watch::Sender<Newest>>,
}

/// Progress of an execution at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressSnapshot {
    /// Number of changes so far; 0 before the first.
    pub version: u64,
    /// Everything reported so far, merged.
    pub progress: Progress,
    /// Reports and names that were not used because they were invalid or too many.
    pub ignored: u64,
}

/// The execution has ended: its progress changes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressClosed;

#[derive(Debug, Default)]
struct Newest {
    snapshot: ProgressSnapshot,
    closed: bool,
}

// === impl ProgressSink ===

impl ProgressSink {
    /// A sink without progress.
    #[must_use]
    pub fn new() -> Self {
        Self { newest: Arc::new(watch::Sender::new(Newest::default())) }
    }

    /// Merges a report, and returns how many of its names were refused because there are too many.
    ///
    /// # Errors
    ///
    /// When the execution has ended.
    pub fn merge(&self, report: &Progress) -> Result<usize, ProgressClosed> {
        let mut result = Err(ProgressClosed);
        self.newest.send_if_modified(|newest| {
            if newest.closed {
                return false;
            }
            let snapshot = &mut newest.snapshot;
            let mut merged = snapshot.progress.clone();
            let refused = merged.merge(report);
            snapshot.ignored += refused as u64;
            result = Ok(refused);
            let changed = merged != snapshot.progress;
            if changed {
                snapshot.progress = merged;
                snapshot.version += 1;
            }
            changed
        });
        result
    }

    /// Counts reports that were not used.
    pub fn ignore(&self, reports: u64) {
        self.newest.send_if_modified(|newest| {
            newest.snapshot.ignored += reports;
            false
        });
    }

    /// Refuses further reports, and wakes all waiters of [`changed`](Self::changed).
    pub fn close(&self) {
        self.newest.send_modify(|newest| newest.closed = true);
    }

    /// Drops the progress to free memory. The version stays.
    pub fn discard(&self) {
        self.newest.send_modify(|newest| newest.snapshot.progress = Progress::default());
    }

    /// The newest progress.
    #[must_use]
    pub fn snapshot(&self) -> ProgressSnapshot {
        self.newest.borrow().snapshot.clone()
    }

    /// Number of changes so far.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.newest.borrow().snapshot.version
    }

    /// Approximate memory of the progress, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.newest.borrow().snapshot.progress.bytes()
    }

    /// Waits for a version above `after` or the end of the execution, and returns the newest progress. Cancel
    /// safe; changes in quick succession are seen as one.
    pub async fn changed(&self, after: u64) -> ProgressSnapshot {
        let mut receiver = self.newest.subscribe();
        let newer = |newest: &Newest| newest.closed || newest.snapshot.version > after;
        match receiver.wait_for(newer).await {
            Ok(newest) => newest.snapshot.clone(),
            // Never: this sink is a sender that lives.
            Err(_) => self.snapshot(),
        }
    }
}

impl Default for ProgressSink {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate::progress::parse_line;
    use tokio::time::timeout;

    fn rows(count: u64) -> Progress {
        parse_line(format!("{{\"counters\": {{\"rows\": {count}}}}}").as_bytes()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_version_rises_with_each_change_and_wakes_waiters() {
        let sink = ProgressSink::new();
        assert_eq!(sink.snapshot(), ProgressSnapshot::default());
        assert_eq!(sink.merge(&rows(5)), Ok(0));
        assert_eq!(sink.changed(0).await, sink.snapshot());
        assert_eq!(sink.version(), 1);
        assert_eq!(sink.merge(&rows(4)), Ok(0), "an older report");
        assert_eq!(sink.version(), 1, "changes nothing");
        let unchanged = timeout(Duration::from_secs(60), sink.changed(1)).await;
        assert!(unchanged.is_err(), "nothing new is waited for");
        let writer = sink.clone();
        let (woken, _) = tokio::join!(sink.changed(1), async { writer.merge(&rows(9)) });
        assert_eq!((woken.version, woken.progress), (2, rows(9)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_wakes_waiters_and_refuses_reports() {
        let sink = ProgressSink::new();
        sink.merge(&rows(1)).unwrap();
        sink.ignore(2);
        let closer = sink.clone();
        let (last, ()) = tokio::join!(sink.changed(1), async { closer.close() });
        assert_eq!((last.version, last.ignored), (1, 2));
        assert_eq!(sink.merge(&rows(2)), Err(ProgressClosed));
        assert_eq!(sink.snapshot().progress, rows(1));
        sink.discard();
        assert_eq!((sink.bytes(), sink.version()), (0, 1));
    }
}
