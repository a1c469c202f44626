use super::schedule::Schedule;
use super::sender::{Sender, Sent};
use super::stage::Stage;
use crate::commands::drill::options::Options;
use crate::commands::drill::screen::Board;
use crate::failure::Failure;
use std::process;
use std::time::Duration;
use tidegate_sim::arrivals::Offers;
use tidegate_sim::pipeline::{FlowPicture, FlowRecorder};
use tidegate_sim::scenario::{PipelineWorld, Scenario};
use tokio::time::{Instant, sleep, timeout};

/// How long an ingestion may take to answer for the first time.
const REACH: Duration = Duration::from_secs(10);
/// How often due records are handed over, acknowledgements are counted, and the pipeline is looked at.
const STEP: Duration = Duration::from_millis(1);
const ACKS_EVERY: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// When nothing more is due, what waits has this many times as long as it takes, and a little.
const DRAIN_TIMES: f64 = 2.0;
const DRAIN_LEAST: Duration = Duration::from_secs(10);

/// Sends what a scenario offers, when it is due.
pub struct Load<'a> {
    scenario: &'a Scenario,
    options: &'a Options,
    stage: Option<&'a Stage>,
    senders: Vec<Sender>,
    offered: u64,
    pub recorder: FlowRecorder,
    pub schedule: Schedule,
    /// When somebody asked for an end.
    pub stopped_at: Option<Duration>,
}

// === impl Load ===

impl<'a> Load<'a> {
    /// Connects all senders to this address, within a runtime.
    pub async fn connect(
        scenario: &'a Scenario,
        world: &PipelineWorld,
        options: &'a Options,
        (address, stage): (&str, Option<&'a Stage>),
    ) -> Result<Self, Failure> {
        let name = |number| format!("tidegate-drill-{}-{number}", process::id());
        let senders = (0..world.senders)
            .map(|number| Sender::new(address, &name(number), world.batch_records))
            .collect::<Result<Vec<_>, _>>()?;
        for sender in &senders {
            let reached = timeout(REACH, sender.reached()).await;
            let why = match reached {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(_elapsed) => format!("no answer in {} s", REACH.as_secs()),
            };
            return Err(Failure::Runtime(format!("{address} takes no frames: {why}")));
        }
        Ok(Self {
            scenario,
            options,
            stage,
            senders,
            offered: 0,
            recorder: FlowRecorder::new(scenario),
            schedule: Schedule::default(),
            stopped_at: None,
        })
    }

    /// Runs to the end, and on until all is acknowledged or the time for that is over.
    pub async fn run(&mut self, seed: u64, board: &Board) {
        let start = Instant::now();
        if let Some(stage) = self.stage {
            stage.pace.begin(start);
        }
        let total = Duration::from_secs_f64(self.scenario.duration_s);
        let mut offers = Offers::new(self.scenario, seed).peekable();
        let mut looks = Looks::default();
        loop {
            let now = start.elapsed();
            while let Some(offer) = offers.next_if(|offer| millis(offer.at_ms) <= now) {
                self.offer(offer.at_ms, offer.records, start.elapsed());
            }
            self.look(&mut looks, now, board);
            if now >= total || self.stopped_at.is_some() {
                break;
            }
            sleep(STEP).await;
        }
        for offer in offers {
            self.schedule.never(offer.records);
        }
        self.drain(start, &mut looks, board).await;
    }

    fn offer(&mut self, at_ms: u64, records: u64, now: Duration) {
        if records == 0 {
            return;
        }
        let due = millis(at_ms);
        self.offered += records;
        self.recorder.offered(due, records);
        self.schedule.handed_over(now.saturating_sub(due), records);
        let number = at_ms as usize % self.senders.len();
        self.senders[number].due(due, records);
    }

    async fn drain(&mut self, start: Instant, looks: &mut Looks, board: &Board) {
        let waiting = self.offered.saturating_sub(self.acked()) as f64;
        let work_s = waiting / self.scenario.capacity_per_s().unwrap_or(f64::INFINITY);
        let until = start.elapsed() + DRAIN_LEAST + Duration::from_secs_f64(DRAIN_TIMES * work_s);
        while self.senders.iter().any(Sender::is_waiting) {
            let now = start.elapsed();
            let is_asked = self.stopped_at.is_none() && self.options.stop.is_asked();
            if now >= until || is_asked {
                break;
            }
            self.look(looks, now, board);
            sleep(ACKS_EVERY).await;
        }
        let now = start.elapsed();
        self.senders.iter_mut().for_each(|sender| sender.look(now, &mut self.recorder));
    }

    fn look(&mut self, looks: &mut Looks, now: Duration, board: &Board) {
        self.senders.iter_mut().for_each(Sender::push);
        if now >= looks.acks_at {
            looks.acks_at = now + ACKS_EVERY;
            self.senders.iter_mut().for_each(|sender| sender.look(now, &mut self.recorder));
        }
        if now < looks.picture_at {
            return;
        }
        looks.picture_at = now + LOOK_EVERY;
        let picture = self.stage.map(|stage| stage.picture(now));
        if let Some(picture) = &picture {
            self.recorder.look(picture);
        }
        let (offered, acked) = (self.offered, self.acked());
        let stored_per_s = looks.rate(now, acked);
        board.write(now, live(offered - acked, stored_per_s, picture));
        if self.stopped_at.is_none() && self.options.stop.is_asked() {
            self.stopped_at = Some(now);
        }
    }

    fn acked(&self) -> u64 {
        self.senders.iter().map(Sender::acked).sum()
    }

    /// Ends all senders; what became of their records.
    pub async fn end(self) -> (Vec<Sent>, FlowRecorder, Schedule) {
        let mut sent = Vec::with_capacity(self.senders.len());
        for sender in self.senders {
            sent.push(sender.end().await);
        }
        (sent, self.recorder, self.schedule)
    }
}

/// When it is looked at what, and what was seen last.
#[derive(Debug, Default)]
struct Looks {
    acks_at: Duration,
    picture_at: Duration,
    rate_at: Duration,
    rate_acked: u64,
    per_s: f64,
}

// === impl Looks ===

impl Looks {
    /// Records a second, over the last second or so.
    fn rate(&mut self, now: Duration, acked: u64) -> f64 {
        let since = now.saturating_sub(self.rate_at);
        if since >= Duration::from_secs(1) {
            self.per_s = acked.saturating_sub(self.rate_acked) as f64 / since.as_secs_f64();
            (self.rate_at, self.rate_acked) = (now, acked);
        }
        self.per_s
    }
}

fn live(waiting: u64, stored_per_s: f64, picture: Option<FlowPicture>) -> String {
    let told = picture.map_or(String::new(), |picture| format!("  level {}", picture.level));
    format!("stored {stored_per_s:.0}/s  waiting {waiting}{told}")
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
