use super::position::Position;
use super::teller::Teller;
use crate::gateway::{Busy, Phase};
use crate::manager::{TaskDesk, TaskNotice, TaskView, Watch};
use bytes::Bytes;
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate::task::{TaskId, TaskStatus};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout};

/// Events that are written and not yet taken by the connection. What comes then waits in the task's own channel,
/// which forgets the oldest.
const AHEAD: usize = 16;

/// A queued task is looked at so often, and its watcher told if it has moved.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A watcher that has heard nothing for so long is shown that somebody is still there.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

/// The events of a task, as a body.
pub struct EventStream {
    events: mpsc::Receiver<Bytes>,
    /// Keeps the connection from counting as quiet.
    _busy: Option<Busy>,
}

/// What a watcher brings along.
pub struct Watcher {
    /// How much it has seen before.
    pub seen: Position,
    /// Its place among those who watch.
    pub place: OwnedSemaphorePermit,
    /// Its connection.
    pub busy: Option<Busy>,
    /// When all have to go.
    pub phase: watch::Receiver<Phase>,
    /// How long it may take nothing.
    pub stall_max: Duration,
}

/// Tells one watcher what becomes of a task.
struct Feeder {
    desk: TaskDesk,
    id: TaskId,
    teller: Teller,
    events: mpsc::Sender<Bytes>,
    phase: watch::Receiver<Phase>,
    stall_max: Duration,
    last_sent: Instant,
    status: TaskStatus,
    _place: OwnedSemaphorePermit,
}

/// Nobody is to be told any more.
struct Gone;

/// Why a watch of a task was followed no further.
enum Followed {
    /// The task is over, and everything was told.
    Over,
    /// So many notices were missed.
    Missed(u64),
    /// The task is another manager's, which tells nobody here: it has to be looked at.
    Unheard,
}

// === impl EventStream ===

impl EventStream {
    /// The events of a watched task. They end after its last status, or when the gateway drains.
    pub fn of(desk: TaskDesk, watch: Watch, watcher: Watcher) -> Self {
        let (events, receiver) = mpsc::channel(AHEAD);
        let known = watcher.seen.attempt <= watch.view.attempt;
        let seen = if known { watcher.seen } else { Position::default() };
        let feeder = Feeder {
            desk,
            id: watch.view.id.clone(),
            teller: Teller::after(seen),
            events,
            phase: watcher.phase,
            stall_max: watcher.stall_max,
            last_sent: Instant::now(),
            status: watch.view.status,
            _place: watcher.place,
        };
        tokio::spawn(feeder.run(watch));
        Self { events: receiver, _busy: watcher.busy }
    }

    /// The next event; `None` after the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.poll_recv(cx)
    }
}

// === impl Feeder ===

impl Feeder {
    async fn run(mut self, mut watch: Watch) {
        loop {
            let ready = match self.follow(watch).await {
                Ok(Followed::Missed(count)) => self.miss(count).await,
                Ok(Followed::Unheard) => self.pause().await,
                Ok(Followed::Over) | Err(Gone) => return,
            };
            if ready.is_err() {
                return;
            }
            match self.desk.watch(&self.id).await {
                Ok(again) => watch = again,
                // The watcher sees an end without a last status, and comes back or asks.
                Err(_) => return,
            }
        }
    }

    /// Tells where the task stands and what is new of its output, then everything that happens.
    async fn follow(&mut self, mut watch: Watch) -> Result<Followed, Gone> {
        let over = watch.view.status.is_over();
        if !over && let Some(event) = self.teller.status_if_moved(&watch.view) {
            self.status = watch.view.status;
            self.send(event).await?;
        }
        for event in self.teller.rest(watch.view.attempt, std::mem::take(&mut watch.output)) {
            self.send(event).await?;
        }
        if over {
            // Last, because nothing follows it.
            self.tell(&watch.view).await?;
            return Ok(Followed::Over);
        }
        let mut looks = interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.next(&mut watch, &mut looks).await? {
                Some(Ok(Some(TaskNotice::Status(view)))) => {
                    self.tell(&view).await?;
                    if view.status.is_over() {
                        return Ok(Followed::Over);
                    }
                }
                Some(Ok(Some(TaskNotice::Output { attempt, chunk }))) => {
                    if let Some(event) = self.teller.output(attempt, &chunk) {
                        self.send(event).await?;
                    }
                }
                Some(Ok(None)) => return Ok(Followed::Unheard),
                Some(Err(missed)) => return Ok(Followed::Missed(missed)),
                None => self.look().await?,
            }
        }
    }

    /// What happens next to the task; `None` when it is time to look at it.
    async fn next(
        &mut self,
        watch: &mut Watch,
        looks: &mut Interval,
    ) -> Result<Option<Result<Option<TaskNotice>, u64>>, Gone> {
        tokio::select! {
            // What has happened is told before anything else, also before all have to go.
            biased;
            () = self.events.closed() => Err(Gone),
            notice = watch.next() => Ok(Some(notice)),
            _ = looks.tick() => Ok(None),
            // An error means that the gateway is gone, which is the same.
            _ = self.phase.wait_for(|phase| *phase == Phase::Draining) => Err(Gone),
        }
    }

    /// What was missed is told as such; where the task stands, and what it wrote, then again.
    async fn miss(&mut self, count: u64) -> Result<(), Gone> {
        let event = self.teller.missed(count);
        self.send(event).await
    }

    /// Until it is time to look at the task again.
    async fn pause(&mut self) -> Result<(), Gone> {
        tokio::select! {
            () = self.events.closed() => return Err(Gone),
            _ = self.phase.wait_for(|phase| *phase == Phase::Draining) => return Err(Gone),
            () = sleep(LOOK_EVERY) => {}
        }
        self.beat().await
    }

    async fn look(&mut self) -> Result<(), Gone> {
        if self.status == TaskStatus::Queued
            && let Ok(view) = self.desk.task(&self.id).await
            // Another status is about to be told by its notice.
            && view.status == TaskStatus::Queued
            && let Some(event) = self.teller.status_if_moved(&view)
        {
            self.send(event).await?;
        }
        self.beat().await
    }

    async fn beat(&mut self) -> Result<(), Gone> {
        if self.last_sent.elapsed() >= HEARTBEAT_EVERY {
            self.send(Bytes::from_static(b": still here\n\n")).await?;
        }
        Ok(())
    }

    async fn tell(&mut self, view: &TaskView) -> Result<(), Gone> {
        self.status = view.status;
        let event = self.teller.status(view);
        self.send(event).await
    }

    /// Whoever takes nothing for too long is not told any more.
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
    use crate::manager::double::{Double, view};
    use std::future::poll_fn;
    use std::sync::Arc;
    use tidegate::task::{OutputChunk, OutputStream};
    use tokio::sync::Semaphore;

    struct Scene {
        double: Double,
        phase: watch::Sender<Phase>,
        places: Arc<Semaphore>,
    }

    impl Scene {
        fn new() -> Self {
            let phase = watch::channel(Phase::Serving).0;
            Self { double: Double::start(), phase, places: Arc::new(Semaphore::new(1)) }
        }

        async fn watch(&self, seen: &str) -> EventStream {
            let desk = self.double.desk();
            let watch = desk.watch(&TaskId::new("a").unwrap()).await.unwrap();
            let watcher = Watcher {
                seen: seen.parse().unwrap_or_default(),
                place: Arc::clone(&self.places).try_acquire_owned().unwrap(),
                busy: None,
                phase: self.phase.subscribe(),
                stall_max: Duration::from_secs(60),
            };
            EventStream::of(desk, watch, watcher)
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
    async fn a_task_is_told_from_the_line_to_its_end() {
        let scene = Scene::new();
        scene.double.put(view("a"));
        let mut events = scene.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"queued\""));
        scene.double.write("a", 1, out("hello\n"));
        assert!(next(&mut events).await.unwrap().starts_with("event: output\nid: 1.6.0\n"));
        scene.double.put(over());
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None, "nothing follows its end");
        assert_eq!(scene.places.available_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_back_gets_the_rest_and_the_end_last() {
        let scene = Scene::new();
        scene.double.put(over());
        scene.double.write("a", 1, out("hello world\n"));
        let mut events = scene.watch("1.6.0").await;
        let rest = next(&mut events).await.unwrap();
        assert!(rest.contains("\"world\\n\"") && rest.contains("id: 1.12.0\n"), "{rest}");
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_there_can_not_be_yet_is_the_beginning() {
        let scene = Scene::new();
        scene.double.put(over());
        scene.double.write("a", 1, out("all\n"));
        let mut events = scene.watch("9.9.9").await;
        assert!(next(&mut events).await.unwrap().contains("\"all\\n\""));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_told_what_it_missed_and_gets_all_of_the_output() {
        let scene = Scene::new();
        scene.double.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let mut events = scene.watch("").await;
        let count = 500;
        for number in 0..count {
            scene.double.write("a", 1, out(&format!("{number}\n")));
        }
        scene.double.put(over());
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
    async fn a_queued_task_that_moves_is_told_at_most_once_a_second() {
        let scene = Scene::new();
        let at = |position| TaskView { queue_position: Some(position), ..view("a") };
        scene.double.put_silently(at(9));
        let mut events = scene.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"queue_position\":9"));
        let start = Instant::now();
        for position in (6..9).rev() {
            scene.double.put_silently(at(position));
            let event = next(&mut events).await.unwrap();
            assert!(event.contains(&format!("\"queue_position\":{position}")), "{event}");
        }
        assert!(start.elapsed() >= Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_task_is_a_comment_now_and_then() {
        let scene = Scene::new();
        scene.double.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let mut events = scene.watch("").await;
        next(&mut events).await;
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(next(&mut events).await.unwrap(), ": still here\n\n");
        }
        let each = start.elapsed() / 3;
        assert!(each >= HEARTBEAT_EVERY && each <= HEARTBEAT_EVERY + LOOK_EVERY, "{each:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_of_another_manager_is_looked_at_until_it_is_over() {
        let scene = Scene::new();
        scene.double.put(view("a"));
        scene.double.leave_to_another("a");
        let mut events = scene.watch("").await;
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"queued\""));
        tokio::time::sleep(Duration::from_secs(5)).await;
        scene.double.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let running = next(&mut events).await.unwrap();
        assert!(running.contains("\"status\":\"running\""), "told once what is told: {running}");
        scene.double.write("a", 1, out("hello\n"));
        assert!(next(&mut events).await.unwrap().contains("hello"));
        scene.double.put(over());
        assert!(next(&mut events).await.unwrap().contains("\"status\":\"succeeded\""));
        assert_eq!(next(&mut events).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_and_a_watcher_that_leaves_end_it() {
        let scene = Scene::new();
        scene.double.put(view("a"));
        let mut events = scene.watch("").await;
        next(&mut events).await;
        scene.phase.send_replace(Phase::Draining);
        assert_eq!(next(&mut events).await, None);
        drop(events);
        scene.phase.send_replace(Phase::Serving);
        let events = scene.watch("").await;
        assert_eq!(scene.places.available_permits(), 0);
        drop(events);
        let free = async {
            while scene.places.available_permits() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(5), free).await.expect("its place is free");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watcher_that_takes_nothing_loses_its_place() {
        let scene = Scene::new();
        scene.double.put(TaskView { status: TaskStatus::Running, attempt: 1, ..view("a") });
        let _events = scene.watch("").await;
        for _ in 0..AHEAD * 2 {
            scene.double.write("a", 1, out("x"));
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(scene.places.available_permits(), 1);
    }
}
