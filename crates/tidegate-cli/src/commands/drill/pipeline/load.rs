use super::schedule::Schedule;
use super::sender::{Sender, Sent};
use super::test_bed::TestBed;
use crate::commands::drill::options::Options;
use crate::commands::drill::progress::ProgressState;
use crate::failure::Failure;
use std::process;
use std::time::Duration;
use tidegate_sim::arrivals::Offers;
use tidegate_sim::pipeline::{FlowPicture, FlowRecorder};
use tidegate_sim::scenario::{PipelineWorld, Scenario};
use tokio::time::{Instant, sleep, timeout};

/// Time within which the ingest server must respond.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Intervals of sending due records, counting acknowledgements, and sampling the pipeline.
const STEP: Duration = Duration::from_millis(1);
const ACKS_EVERY: Duration = Duration::from_millis(20);
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
/// Time to drain after the load: this multiple of the work that is left, plus the minimum.
const DRAIN_FACTOR: f64 = 2.0;
const DRAIN_MIN: Duration = Duration::from_secs(10);

/// Load of a pipeline scenario: sends records when they are due.
pub struct Load<'a> {
    scenario: &'a Scenario,
    options: &'a Options,
    test_bed: Option<&'a TestBed>,
    senders: Vec<Sender>,
    offered: u64,
    pub recorder: FlowRecorder,
    pub schedule: Schedule,
    /// Time of an early stop.
    pub stopped_at: Option<Duration>,
}

// === impl Load ===

impl<'a> Load<'a> {
    /// Connects all senders; must be called within a runtime.
    pub async fn connect(
        scenario: &'a Scenario,
        world: &PipelineWorld,
        options: &'a Options,
        (address, test_bed): (&str, Option<&'a TestBed>),
    ) -> Result<Self, Failure> {
        let name = |number| format!("tidegate-drill-{}-{number}", process::id());
        let senders = (0..world.senders)
            .map(|number| Sender::new(address, &name(number), world.batch_records))
            .collect::<Result<Vec<_>, _>>()?;
        for sender in &senders {
            let reached = timeout(CONNECT_WITHIN, sender.reached()).await;
            let why = match reached {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(_elapsed) => format!("no response in {} s", CONNECT_WITHIN.as_secs()),
            };
            return Err(Failure::Runtime(format!("{address} does not accept frames: {why}")));
        }
        Ok(Self {
            scenario,
            options,
            test_bed,
            senders,
            offered: 0,
            recorder: FlowRecorder::new(scenario),
            schedule: Schedule::default(),
            stopped_at: None,
        })
    }

    /// Runs the load, then drains until all records are acknowledged or the drain time is over.
    pub async fn run(&mut self, seed: u64, state: &ProgressState) {
        let start = Instant::now();
        if let Some(test_bed) = self.test_bed {
            test_bed.pace.begin(start);
        }
        let total = Duration::from_secs_f64(self.scenario.duration_s);
        let mut offers = Offers::new(self.scenario, seed).peekable();
        let mut sampling = Sampling::default();
        loop {
            let now = start.elapsed();
            while let Some(offer) = offers.next_if(|offer| millis(offer.at_ms) <= now) {
                self.offer(offer.at_ms, offer.records, start.elapsed());
            }
            self.sample(&mut sampling, now, state);
            if now >= total || self.stopped_at.is_some() {
                break;
            }
            sleep(STEP).await;
        }
        for offer in offers {
            self.schedule.unsent(offer.records);
        }
        self.drain(start, &mut sampling, state).await;
    }

    fn offer(&mut self, at_ms: u64, records: u64, now: Duration) {
        if records == 0 {
            return;
        }
        let due = millis(at_ms);
        self.offered += records;
        self.recorder.offered(due, records);
        self.schedule.sent(now.saturating_sub(due), records);
        let number = at_ms as usize % self.senders.len();
        self.senders[number].due(due, records);
    }

    async fn drain(&mut self, start: Instant, sampling: &mut Sampling, state: &ProgressState) {
        let waiting = self.offered.saturating_sub(self.acked()) as f64;
        let work_s = waiting / self.scenario.capacity_per_s().unwrap_or(f64::INFINITY);
        let until = start.elapsed() + DRAIN_MIN + Duration::from_secs_f64(DRAIN_FACTOR * work_s);
        while self.senders.iter().any(Sender::is_waiting) {
            let now = start.elapsed();
            let is_requested = self.stopped_at.is_none() && self.options.stop.is_requested();
            if now >= until || is_requested {
                break;
            }
            self.sample(sampling, now, state);
            sleep(ACKS_EVERY).await;
        }
        let now = start.elapsed();
        self.senders.iter_mut().for_each(|sender| sender.count_acks(now, &mut self.recorder));
    }

    fn sample(&mut self, sampling: &mut Sampling, now: Duration, state: &ProgressState) {
        self.senders.iter_mut().for_each(Sender::push);
        if now >= sampling.acks_at {
            sampling.acks_at = now + ACKS_EVERY;
            self.senders.iter_mut().for_each(|sender| sender.count_acks(now, &mut self.recorder));
        }
        if now < sampling.picture_at {
            return;
        }
        sampling.picture_at = now + SAMPLE_EVERY;
        let picture = self.test_bed.map(|test_bed| test_bed.picture(now));
        if let Some(picture) = &picture {
            self.recorder.look(picture);
        }
        let (offered, acked) = (self.offered, self.acked());
        let stored_per_s = sampling.rate(now, acked);
        state.write(now, progress_text(offered - acked, stored_per_s, picture));
        if self.stopped_at.is_none() && self.options.stop.is_requested() {
            self.stopped_at = Some(now);
        }
    }

    fn acked(&self) -> u64 {
        self.senders.iter().map(Sender::acked).sum()
    }

    /// Ends all senders; returns their totals.
    pub async fn end(self) -> (Vec<Sent>, FlowRecorder, Schedule) {
        let mut sent = Vec::with_capacity(self.senders.len());
        for sender in self.senders {
            sent.push(sender.end().await);
        }
        (sent, self.recorder, self.schedule)
    }
}

/// Times of the next samples, and the last rate.
#[derive(Debug, Default)]
struct Sampling {
    acks_at: Duration,
    picture_at: Duration,
    rate_at: Duration,
    rate_acked: u64,
    per_s: f64,
}

// === impl Sampling ===

impl Sampling {
    /// Acknowledged records per second, over the last second.
    fn rate(&mut self, now: Duration, acked: u64) -> f64 {
        let since = now.saturating_sub(self.rate_at);
        if since >= Duration::from_secs(1) {
            self.per_s = acked.saturating_sub(self.rate_acked) as f64 / since.as_secs_f64();
            (self.rate_at, self.rate_acked) = (now, acked);
        }
        self.per_s
    }
}

fn progress_text(waiting: u64, stored_per_s: f64, picture: Option<FlowPicture>) -> String {
    let level = picture.map_or(String::new(), |picture| format!("  level {}", picture.level));
    format!("stored {stored_per_s:.0}/s  waiting {waiting}{level}")
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
