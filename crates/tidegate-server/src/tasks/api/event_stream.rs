use super::limits::WatcherPermit;
use super::position::Position;
use super::sse_encoder::SseEncoder;
use crate::http::{ByteStream, InUse, Phase};
use crate::tasks::manager::{ManagerHandle, TaskNotice, TaskView, TaskWatch};
use bytes::Bytes;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate::task::{TaskId, TaskStatus};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout};

/// Events that are encoded and not yet read by the connection. Further ones wait in the task's own channel, which
/// drops the oldest.
const AHEAD: usize = 16;

/// Interval of checks whether a queued task has moved.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Interval of heartbeat comments on a quiet stream.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

/// The server-sent events of a task, as a body.
pub struct EventStream {
    events: mpsc::Receiver<Bytes>,
    /// Marks the connection as in use.
    _in_use: Option<InUse>,
}

/// A watcher of a task.
pub struct Watcher {
    /// Position in the output that it has seen.
    pub seen: Position,
    /// Permit within the limit of watchers.
    pub permit: WatcherPermit,
    /// Marks its connection as in use.
    pub in_use: Option<InUse>,
    /// Phase of the process: a drain ends the stream.
    pub phase: watch::Receiver<Phase>,
    /// Longest time that it may read nothing.
    pub stall_max: Duration,
}

/// Task that feeds one watcher with events.
struct Feeder {
    manager: ManagerHandle,
    id: TaskId,
    sse_encoder: SseEncoder,
    events: mpsc::Sender<Bytes>,
    phase: watch::Receiver<Phase>,
    stall_max: Duration,
    last_sent: Instant,
    status: TaskStatus,
    _permit: WatcherPermit,
}

/// The watcher has left or stalled, or the process drains.
struct Gone;

/// End of a subscription.
enum WatchEnd {
    /// The task is over, and every event was sent.
    Over,
    /// Number of notices that were missed.
    Missed(u64),
    /// Another manager owns the task, and sends no notices here: it must be polled.
    NotOwned,
}

// === impl EventStream ===

impl EventStream {
    /// The events of a watched task. They end after its last status, or when the process drains.
    pub fn of(manager: ManagerHandle, watch: TaskWatch, watcher: Watcher) -> Self {
        let (events, receiver) = mpsc::channel(AHEAD);
        let known = watcher.seen.attempt <= watch.view.attempt;
        let seen = if known { watcher.seen } else { Position::default() };
        let feeder = Feeder {
            manager,
            id: watch.view.id.clone(),
            sse_encoder: SseEncoder::after(seen),
            events,
            phase: watcher.phase,
            stall_max: watcher.stall_max,
            last_sent: Instant::now(),
            status: watch.view.status,
            _permit: watcher.permit,
        };
        tokio::spawn(feeder.run(watch));
        Self { events: receiver, _in_use: watcher.in_use }
    }
}

impl ByteStream for EventStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.poll_recv(cx)
    }
}

// === impl Feeder ===

impl Feeder {
    async fn run(mut self, mut watch: TaskWatch) {
        loop {
            let ready = match self.follow(watch).await {
                Ok(WatchEnd::Missed(count)) => self.miss(count).await,
                Ok(WatchEnd::NotOwned) => self.pause().await,
                Ok(WatchEnd::Over) | Err(Gone) => return,
            };
            if ready.is_err() {
                return;
            }
            match self.manager.watch(&self.id).await {
                Ok(again) => watch = again,
                // The watcher sees an end without a final status, and reconnects.
                Err(_) => return,
            }
        }
    }

    /// Sends the status and the unseen output, then every change.
    async fn follow(&mut self, mut watch: TaskWatch) -> Result<WatchEnd, Gone> {
        let over = watch.view.status.is_over();
        if !over && let Some(event) = self.sse_encoder.status_if_changed(&watch.view) {
            self.status = watch.view.status;
            self.send(event).await?;
        }
        for event in self.sse_encoder.rest(watch.view.attempt, std::mem::take(&mut watch.output)) {
            self.send(event).await?;
        }
        if over {
            // The final status comes last.
            self.send_status(&watch.view).await?;
            return Ok(WatchEnd::Over);
        }
        let mut checks = interval_at(Instant::now() + CHECK_EVERY, CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.next(&mut watch, &mut checks).await? {
                Some(Ok(Some(TaskNotice::Status(view)))) => {
                    self.send_status(&view).await?;
                    if view.status.is_over() {
                        return Ok(WatchEnd::Over);
                    }
                }
                Some(Ok(Some(TaskNotice::Output { attempt, chunk }))) => {
                    if let Some(event) = self.sse_encoder.output(attempt, &chunk) {
                        self.send(event).await?;
                    }
                }
                Some(Ok(Some(TaskNotice::Progress { attempt, progress }))) => {
                    if let Some(event) = self.sse_encoder.progress(attempt, &progress) {
                        self.send(event).await?;
                    }
                }
                Some(Ok(None)) => return Ok(WatchEnd::NotOwned),
                Some(Err(missed)) => return Ok(WatchEnd::Missed(missed)),
                None => self.check().await?,
            }
        }
    }

    /// Waits for the next change; `None` when a check is due.
    async fn next(
        &mut self,
        watch: &mut TaskWatch,
        checks: &mut Interval,
    ) -> Result<Option<Result<Option<TaskNotice>, u64>>, Gone> {
        tokio::select! {
            // Changes are sent before anything else, also before a drain ends the stream.
            biased;
            () = self.events.closed() => Err(Gone),
            notice = watch.next() => Ok(Some(notice)),
            _ = checks.tick() => Ok(None),
            // An error means that the process has ended, which is the same.
            _ = self.phase.wait_for(|phase| *phase == Phase::Draining) => Err(Gone),
        }
    }

    /// Reports missed changes; the next subscription then sends the status and the unseen output.
    async fn miss(&mut self, count: u64) -> Result<(), Gone> {
        let event = self.sse_encoder.missed(count);
        self.send(event).await
    }

    /// Waits before the next poll of a task that another manager owns.
    async fn pause(&mut self) -> Result<(), Gone> {
        tokio::select! {
            () = self.events.closed() => return Err(Gone),
            _ = self.phase.wait_for(|phase| *phase == Phase::Draining) => return Err(Gone),
            () = sleep(CHECK_EVERY) => {}
        }
        self.heartbeat().await
    }

    /// Sends a queued task's status if it has moved.
    async fn check(&mut self) -> Result<(), Gone> {
        if self.status == TaskStatus::Queued
            && let Ok(view) = self.manager.task(&self.id).await
            // Another status comes with its notice.
            && view.status == TaskStatus::Queued
            && let Some(event) = self.sse_encoder.status_if_changed(&view)
        {
            self.send(event).await?;
        }
        self.heartbeat().await
    }

    async fn heartbeat(&mut self) -> Result<(), Gone> {
        if self.last_sent.elapsed() >= HEARTBEAT_EVERY {
            self.send(Bytes::from_static(b": heartbeat\n\n")).await?;
        }
        Ok(())
    }

    async fn send_status(&mut self, view: &TaskView) -> Result<(), Gone> {
        self.status = view.status;
        let event = self.sse_encoder.status(view);
        self.send(event).await
    }

    /// Sends an event; a watcher that reads nothing for too long is dropped.
    async fn send(&mut self, event: Bytes) -> Result<(), Gone> {
        match timeout(self.stall_max, self.events.send(event)).await {
            Ok(Ok(())) => {
                self.last_sent = Instant::now();
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::fake_manager::{FakeManager, view};
    use std::future::poll_fn;
    use std::sync::Arc;
    use tidegate::task::{OutputChunk, OutputStream};
    use tokio::sync::Semaphore;

    struct TestBed {
        fake: FakeManager,
        phase: watch::Sender<Phase>,
        permits: Arc<Semaphore>,
    }

    impl TestBed {
        fn new() -> Self {
            let phase = watch::channel(Phase::Serving).0;
            Self { fake: FakeManager::start(), phase, permits: Arc::new(Semaphore::new(1)) }
        }

        async fn watch(&self, seen: &str) -> EventStream {
            let manager = self.fake.handle();
            let watch = manager.watch(&TaskId::new("a").unwrap()).await.unwrap();
            let watcher = Watcher {
                seen: seen.parse().unwrap_or_default(),
                permit: Arc::clone(&self.permits).try_acquire_owned().unwrap().into(),
                in_use: None,
                phase: self.phase.subscribe(),
                stall_max: Duration::from_secs(60),
            };
            EventStream::of(manager, watch, watcher)
        }
    }

    async fn next(events: &mut EventStream) -> Option<String> {
        let event = timeout(Duration::from_secs(30), poll_fn(|cx| events.poll_next(cx))).await;
        event.expect("an event").map(|event| String::from_utf8(event.to_vec()).unwrap())
    }

    fn out(text: &str) -> OutputChunk {
        OutputChunk { stream: OutputStream::Stdout, text: text.to_owned() }
    }

    fn over() -> TaskView {
        TaskView { status: TaskStatus::Succeeded, attempt: 1, queue_position: None, ..view("a") }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_sees_a_task_from_the_queue_to_its_end() {
        let bed = TestBed::new();
        bed.fake.put(view("a"));
        let mut events = bed.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"queued\""));
        bed.fake.write("a", 1, out("hello\n"));
        assert!(next(&mut events).await.unwrap().starts_with("event: output\nid: 1.6.0\n"));
        bed.fake.put(over());
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None, "nothing follows its end");
        assert_eq!(bed.permits.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_reconnects_gets_the_rest_and_the_end_last() {
        let bed = TestBed::new();
        bed.fake.put(over());
        bed.fake.write("a", 1, out("hello world\n"));
        let mut events = bed.watch("1.6.0").await;
        let rest = next(&mut events).await.unwrap();
        assert!(rest.contains("\"world\\n\"") && rest.contains("id: 1.12.0\n"), "{rest}");
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_position_beyond_the_output_is_the_beginning() {
        let bed = TestBed::new();
        bed.fake.put(over());
        bed.fake.write("a", 1, out("all\n"));
        let mut events = bed.watch("9.9.9").await;
        assert!(next(&mut events).await.unwrap().contains("\"all\\n\""));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_the_missed_count_and_all_of_the_output() {
        let bed = TestBed::new();
        bed.fake.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let mut events = bed.watch("").await;
        let count = 500;
        for number in 0..count {
            bed.fake.write("a", 1, out(&format!("{number}\n")));
        }
        bed.fake.put(over());
        let (mut written, mut missed, mut last) = (String::new(), 0, String::new());
        while let Some(event) = next(&mut events).await {
            let data = event.split("data: ").nth(1).unwrap();
            let data: serde_json::Value = serde_json::from_str(data.trim()).unwrap();
            written += data["text"].as_str().unwrap_or_default();
            missed += data["count"].as_u64().unwrap_or_default();
            last = event;
        }
        let expected: String = (0..count).map(|number| format!("{number}\n")).collect();
        assert_eq!(written, expected, "nothing is lost and nothing comes twice");
        assert!(missed > 0);
        assert!(last.contains("\"status\":\"succeeded\""), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_queued_task_that_moves_is_sent_at_most_once_a_second() {
        let bed = TestBed::new();
        let at = |position| TaskView { queue_position: Some(position), ..view("a") };
        bed.fake.put_silently(at(9));
        let mut events = bed.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"queue_position\":9"));
        let start = Instant::now();
        for position in (6..9).rev() {
            bed.fake.put_silently(at(position));
            let event = next(&mut events).await.unwrap();
            assert!(event.contains(&format!("\"queue_position\":{position}")), "{event}");
        }
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_has_heartbeats() {
        let bed = TestBed::new();
        bed.fake.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let mut events = bed.watch("").await;
        next(&mut events).await;
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(next(&mut events).await.unwrap(), ": heartbeat\n\n");
        }
        let each = start.elapsed() / 3;
        assert!(each >= HEARTBEAT_EVERY && each <= HEARTBEAT_EVERY + CHECK_EVERY, "{each:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_of_another_manager_is_polled_until_it_is_over() {
        let bed = TestBed::new();
        bed.fake.put(view("a"));
        bed.fake.leave_to_another("a");
        let mut events = bed.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"queued\""));
        tokio::time::sleep(Duration::from_secs(5)).await;
        bed.fake.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let running = next(&mut events).await.unwrap();
        assert!(running.contains("\"status\":\"running\""), "no status is repeated: {running}");
        bed.fake.write("a", 1, out("hello\n"));
        assert!(next(&mut events).await.unwrap().contains("hello"));
        bed.fake.put(over());
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_and_a_watcher_that_leaves_end_the_stream() {
        let bed = TestBed::new();
        bed.fake.put(view("a"));
        let mut events = bed.watch("").await;
        next(&mut events).await;
        bed.phase.send_replace(Phase::Draining);
        assert_eq!(next(&mut events).await, None);
        drop(events);
        bed.phase.send_replace(Phase::Serving);
        let events = bed.watch("").await;
        assert_eq!(bed.permits.available_permits(), 0);
        drop(events);
        let free = async {
            while bed.permits.available_permits() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(5), free).await.expect("its permit is free");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_reads_nothing_loses_its_permit() {
        let bed = TestBed::new();
        bed.fake.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let _events = bed.watch("").await;
        for _ in 0..AHEAD * 2 {
            bed.fake.write("a", 1, out("x"));
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(bed.permits.available_permits(), 1);
    }
}
