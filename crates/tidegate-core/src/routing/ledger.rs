use super::rank::{RankLoad, RankTicket};
use super::{BusyThresholds, Charge, KvUsage, LoadReport, RankView, Threshold};
use std::time::Duration;

/// What the silence of a worker means: it never told its load, or not for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnSilence {
    /// It is free as far as can be known: only what was sent to it counts.
    #[default]
    Free,
    /// It is busy until it is heard again.
    Busy,
}

/// What is known of the load of one worker, by rank.
///
/// Pure bookkeeping: whoever shares it between threads guards it.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::routing::{BusyThresholds, Charge, OnSilence, WorkerLedger};
///
/// let thresholds = BusyThresholds { active_requests: Some(2), ..BusyThresholds::OFF };
/// let mut ledger = WorkerLedger::new(OnSilence::Free);
/// let now = Duration::ZERO;
/// let first = ledger.try_charge(Charge::LEAST, &thresholds, now).expect("two places");
/// let _second = ledger.try_charge(Charge::LEAST, &thresholds, now).expect("two places");
/// assert!(ledger.try_charge(Charge::LEAST, &thresholds, now).is_err());
/// ledger.release(first);
/// assert!(ledger.try_charge(Charge::LEAST, &thresholds, now).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct WorkerLedger {
    ranks: Vec<RankLoad>,
    on_silence: OnSilence,
    /// Blocks that a request takes, learned from reports.
    blocks_per_request: Option<f64>,
}

/// One request's charge on a worker, to be given back once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct Ticket {
    rank: usize,
    part: RankTicket,
}

/// How a worker stands towards one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At least one rank takes it.
    Free,
    /// Every rank that is ready exceeds a threshold; this is the one of the last rank looked at.
    Busy(Threshold),
    /// It has not been heard, and that counts as busy.
    Silent,
    /// It reports, and says that it is still starting.
    NotReady,
}

/// The most ranks that are kept of one worker; a report of a higher one is ignored.
pub const RANKS_MAX: usize = 256;

// === impl WorkerLedger ===

impl WorkerLedger {
    /// A worker of one rank that has not been heard.
    #[must_use]
    pub fn new(on_silence: OnSilence) -> Self {
        Self { ranks: vec![RankLoad::default()], on_silence, blocks_per_request: None }
    }

    /// What this request is expected to cost here: as many blocks as requests turned out to take, once that is
    /// known.
    #[must_use]
    pub fn estimate(&self, charge: Charge) -> Charge {
        match self.blocks_per_request {
            Some(blocks) => Charge::new(blocks.round() as u64, charge.prefill_tokens),
            None => charge,
        }
    }

    /// Charges a request to the least loaded rank that takes it.
    ///
    /// # Errors
    ///
    /// How the worker stands when no rank does. Nothing was charged.
    pub fn try_charge(
        &mut self,
        charge: Charge,
        thresholds: &BusyThresholds,
        now: Duration,
    ) -> Result<Ticket, Standing> {
        let free = |rank: &RankLoad| self.rank_standing(rank, charge, thresholds) == Standing::Free;
        let takes = self.ranks.iter().enumerate().filter(|(_, rank)| free(rank));
        match takes.min_by_key(|(_, rank)| rank.view().requests).map(|(index, _)| index) {
            Some(rank) => Ok(self.charge_rank(rank, charge, now)),
            None => Err(self.standing(charge, thresholds)),
        }
    }

    /// Charges a request to the least loaded rank, whatever the thresholds say.
    pub fn charge_anyway(&mut self, charge: Charge, now: Duration) -> Ticket {
        let ranks = self.ranks.iter().enumerate();
        let least = ranks.min_by_key(|(_, rank)| rank.view().requests);
        let rank = least.map_or(0, |(index, _)| index);
        self.charge_rank(rank, charge, now)
    }

    /// The request's answer has begun.
    pub fn prefilled(&mut self, ticket: &mut Ticket) {
        if let Some(rank) = self.ranks.get_mut(ticket.rank) {
            rank.prefilled(&mut ticket.part);
        }
    }

    /// The request is over.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(rank) = self.ranks.get_mut(ticket.rank) {
            rank.release(ticket.part);
        }
    }

    /// Takes in what a rank said of itself at `at`. A rank that was not known is from now on.
    pub fn hear(&mut self, rank: usize, report: LoadReport, at: Duration) {
        if rank >= RANKS_MAX || report.is_empty() {
            return;
        }
        if rank >= self.ranks.len() {
            self.ranks.resize_with(rank + 1, RankLoad::default);
        }
        self.ranks[rank].hear(report, at);
        self.learn(&report);
    }

    /// Drops ranks from this one on that nothing is outstanding on: the worker has fewer than it had.
    pub fn keep_ranks(&mut self, count: usize) {
        while self.ranks.len() > count.max(1)
            && self.ranks.last().is_some_and(|rank| rank.outstanding() == 0)
        {
            self.ranks.pop();
        }
    }

    /// Forgets reports made before this. Answers whether any was forgotten.
    pub fn expire(&mut self, before: Duration) -> bool {
        let mut any = false;
        for rank in &mut self.ranks {
            if rank.heard_at().is_some_and(|at| at < before) {
                rank.forget();
                any = true;
            }
        }
        any
    }

    /// How the worker stands towards a request.
    #[must_use]
    pub fn standing(&self, charge: Charge, thresholds: &BusyThresholds) -> Standing {
        let mut standing = Standing::NotReady;
        for rank in &self.ranks {
            match self.rank_standing(rank, charge, thresholds) {
                Standing::Free => return Standing::Free,
                // A rank that is starting says nothing about how busy the others are.
                Standing::NotReady => {}
                other => standing = other,
            }
        }
        standing
    }

    /// Requests sent to it that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.ranks.iter().map(RankLoad::outstanding).sum()
    }

    /// Requests that are there as far as is known, also those that others sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.view().requests).sum()
    }

    /// Every rank: what it last said and when, and what it has to do.
    pub fn ranks(
        &self,
    ) -> impl ExactSizeIterator<Item = (Option<LoadReport>, Option<Duration>, RankView)> {
        self.ranks.iter().map(|rank| (rank.report(), rank.heard_at(), rank.view()))
    }

    /// Whether any rank's report is there to be believed.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.ranks.iter().any(|rank| rank.report().is_some())
    }

    fn rank_standing(
        &self,
        rank: &RankLoad,
        charge: Charge,
        thresholds: &BusyThresholds,
    ) -> Standing {
        if rank.report().is_none() && self.on_silence == OnSilence::Busy && !thresholds.are_off() {
            return Standing::Silent;
        }
        let view = rank.view();
        if view.kv == KvUsage::NotReady {
            return Standing::NotReady;
        }
        view.stops(charge, thresholds).map_or(Standing::Free, Standing::Busy)
    }

    fn charge_rank(&mut self, rank: usize, charge: Charge, now: Duration) -> Ticket {
        Ticket { rank, part: self.ranks[rank].charge(charge, now) }
    }

    /// Follows the mean over some ten reports, so that one odd report moves it little.
    fn learn(&mut self, report: &LoadReport) {
        let (KvUsage::Blocks { active, .. }, Some(running)) = (report.kv(), report.running) else {
            return;
        };
        if running == 0 || active == 0 {
            return;
        }
        let seen = active as f64 / running as f64;
        let blocks = self.blocks_per_request.map_or(seen, |known| known + 0.1 * (seen - known));
        self.blocks_per_request = Some(blocks);
    }
}

// === impl Ticket ===

impl Ticket {
    /// The rank that was charged.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_millis(500);

    fn kv(active: u64, total: u64) -> LoadReport {
        LoadReport {
            active_decode_blocks: Some(active),
            kv_total_blocks: Some(total),
            ..LoadReport::default()
        }
    }

    fn half() -> BusyThresholds {
        BusyThresholds { active_decode_blocks: Some(0.5), ..BusyThresholds::OFF }
    }

    #[test]
    fn a_worker_is_busy_only_when_all_its_ranks_are() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(0, kv(90, 100), NOW);
        ledger.hear(1, kv(10, 100), NOW);
        let ticket = ledger.try_charge(Charge::LEAST, &half(), NOW).unwrap();
        assert_eq!(ticket.rank(), 1);
        ledger.hear(1, kv(90, 100), NOW);
        let standing = ledger.standing(Charge::LEAST, &half());
        assert_eq!(standing, Standing::Busy(Threshold::ActiveDecodeBlocks));
    }

    #[test]
    fn two_ranks_have_the_places_of_both_and_fill_evenly() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(0, kv(0, 32), NOW);
        ledger.hear(1, kv(0, 32), NOW);
        let tickets: Vec<_> =
            (0..200).filter_map(|_| ledger.try_charge(Charge::LEAST, &half(), NOW).ok()).collect();
        assert_eq!(tickets.len(), 32);
        assert_eq!(tickets.iter().filter(|ticket| ticket.rank() == 0).count(), 16);
    }

    #[test]
    fn silence_is_what_the_policy_says_and_a_report_ends_it() {
        let mut ledger = WorkerLedger::new(OnSilence::Busy);
        assert_eq!(ledger.standing(Charge::LEAST, &half()), Standing::Silent);
        assert_eq!(ledger.standing(Charge::LEAST, &BusyThresholds::OFF), Standing::Free);
        ledger.hear(0, kv(0, 100), NOW);
        assert_eq!(ledger.standing(Charge::LEAST, &half()), Standing::Free);
        assert!(ledger.expire(NOW + Duration::from_millis(1)));
        assert_eq!(ledger.standing(Charge::LEAST, &half()), Standing::Silent);
    }

    #[test]
    fn a_worker_that_is_starting_is_not_taken_for_idle() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(0, kv(0, 0), NOW);
        assert_eq!(ledger.standing(Charge::LEAST, &BusyThresholds::OFF), Standing::NotReady);
        ledger.hear(0, kv(0, 100), NOW);
        assert_eq!(ledger.standing(Charge::LEAST, &half()), Standing::Free);
    }

    #[test]
    fn the_last_report_of_a_busy_worker_does_not_latch() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(0, kv(99, 100), NOW);
        assert_ne!(ledger.standing(Charge::LEAST, &half()), Standing::Free);
        ledger.expire(NOW + Duration::from_secs(10));
        assert_eq!(ledger.standing(Charge::LEAST, &half()), Standing::Free);
    }

    #[test]
    fn what_requests_take_is_learned_from_reports() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        let guess = Charge::new(2, 30);
        assert_eq!(ledger.estimate(guess), guess);
        ledger.hear(0, LoadReport { running: Some(10), ..kv(200, 1000) }, NOW);
        assert_eq!(ledger.estimate(guess), Charge::new(20, 30));
    }

    #[test]
    fn ranks_that_are_gone_are_dropped_when_nothing_is_on_them() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(3, kv(1, 100), NOW);
        assert_eq!(ledger.ranks().len(), 4);
        ledger.keep_ranks(1);
        assert_eq!(ledger.ranks().len(), 1);
        ledger.hear(RANKS_MAX, kv(1, 100), NOW);
        assert_eq!(ledger.ranks().len(), 1);
    }
}
