use super::draws::Draws;
use rust_decimal::Decimal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::sequence::{SeqStatus, SeqWindow};
use tidegate::store::{
    Appended, BatchRefusal, PricedBatch, Records, Store, StoreError, Unstored, UsagePage,
    UsageQuery,
};
use tokio::sync::watch;
use tokio::time::sleep;

/// A store in memory that is as slow as it is told to be.
pub struct SimStore {
    mood: watch::Sender<Mood>,
    spread: Spread,
    kept: Mutex<Kept>,
}

/// What it does with what it is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    /// It stores so many records a second.
    Works { per_s: f64 },
    /// It does not answer.
    Blocks,
    /// It says at once that it can't.
    Fails,
}

/// How the time for a batch differs from its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    Fixed,
    Exponential,
    /// This share of batches takes so many times as long as the others.
    TwoSpeeds {
        slow_share: f64,
        slow_factor: f64,
    },
}

struct Kept {
    draws: Draws,
    windows: HashMap<Arc<str>, SeqWindow>,
    /// How often each batch was counted, and with how many records.
    batches: HashMap<(Arc<str>, u64), (u32, usize)>,
    records: u64,
}

impl SimStore {
    pub fn new(mood: Mood, spread: Spread, seed: u64) -> Arc<Self> {
        let kept = Kept {
            draws: Draws::new(seed),
            windows: HashMap::new(),
            batches: HashMap::new(),
            records: 0,
        };
        Arc::new(Self { mood: watch::channel(mood).0, spread, kept: Mutex::new(kept) })
    }

    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    pub fn records(&self) -> u64 {
        self.kept.lock().unwrap().records
    }

    /// Batches of a sender that were counted, and whether one was more than once.
    pub fn counted(&self, sender: &str) -> (u64, bool) {
        let kept = self.kept.lock().unwrap();
        let of = |key: &&(Arc<str>, u64)| &*key.0 == sender;
        let twice = kept.batches.iter().any(|(key, (count, _))| of(&key) && *count > 1);
        (kept.batches.keys().filter(of).count() as u64, twice)
    }

    /// How fast it works, as soon as it does anything.
    async fn answering(&self) -> Result<f64, StoreError> {
        let mut mood = self.mood.subscribe();
        let mood = *mood.wait_for(|mood| *mood != Mood::Blocks).await.unwrap();
        match mood {
            Mood::Works { per_s } => Ok(per_s),
            _ => Err(StoreError::Unavailable("told to fail".to_owned())),
        }
    }

    fn service_time(&self, batches: &[PricedBatch], per_s: f64) -> Duration {
        let draws = &mut self.kept.lock().unwrap().draws;
        let time_s =
            |batch: &PricedBatch| batch.records.len() as f64 / per_s * self.spread.factor(draws);
        Duration::from_secs_f64(batches.iter().map(time_s).sum())
    }
}

impl Store for SimStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        let per_s = match self.answering().await {
            Ok(per_s) => per_s,
            Err(error) => return Err(Unstored { batches, error }),
        };
        sleep(self.service_time(&batches, per_s)).await;
        // What is under way when it stops to answer is held up too.
        if let Err(error) = self.answering().await {
            return Err(Unstored { batches, error });
        }
        let mut kept = self.kept.lock().unwrap();
        Ok(batches.iter().map(|batch| kept.keep(batch)).collect())
    }

    async fn retain(&self, _before_ns: i64) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn scan(&self, _from_ns: i64, _until_ns: i64) -> Records {
        Records::of(Vec::new())
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        self.answering().await?;
        Ok(self.kept.lock().unwrap().windows.get(sender).cloned().unwrap_or_default())
    }

    async fn owner(&self, _sender: &str) -> Result<Option<Arc<str>>, StoreError> {
        Ok(None)
    }

    async fn used(
        &self,
        _tenant: &str,
        _meter: &str,
        _from_ns: i64,
        _until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        self.answering().await?;
        Ok(Decimal::ZERO)
    }

    async fn usage_page(&self, _query: &UsageQuery) -> Result<UsagePage, StoreError> {
        Ok(UsagePage::default())
    }
}

impl Kept {
    fn keep(&mut self, batch: &PricedBatch) -> Appended {
        let count = batch.records.len();
        if let Some(origin) = &batch.origin {
            let window = self.windows.entry(Arc::clone(&origin.sender)).or_default();
            window.settle(origin.settled);
            match window.record(origin.seq) {
                SeqStatus::Duplicate => return Appended::Repeat,
                SeqStatus::TooFar => return Appended::Refused(BatchRefusal::TooFar),
                SeqStatus::New => {}
            }
            let key = (Arc::clone(&origin.sender), origin.seq);
            self.batches.entry(key).or_insert((0, count)).0 += 1;
        }
        self.records += count as u64;
        Appended::New
    }
}

impl Spread {
    /// Around 1.
    fn factor(self, draws: &mut Draws) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Exponential => draws.exponential(1.0),
            Self::TwoSpeeds { slow_share, slow_factor } => {
                let fast = 1.0 / (1.0 - slow_share + slow_share * slow_factor);
                if draws.fraction() < slow_share { fast * slow_factor } else { fast }
            }
        }
    }
}
