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
/// use tidegate_core::routing::{BusyThresholds, Charge, OnSilence, WorkerLedger};
///
/// let thresholds = BusyThresholds { active_requests: Some(2), ..BusyThresholds::OFF };
/// let mut ledger = WorkerLedger::new(OnSilence::Free);
/// let first = ledger.try_charge(Charge::LEAST, &thresholds).expect("two places");
/// let _second = ledger.try_charge(Charge::LEAST, &thresholds).expect("two places");
/// assert!(ledger.try_charge(Charge::LEAST, &thresholds).is_err());
/// ledger.release(first);
/// assert!(ledger.try_charge(Charge::LEAST, &thresholds).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct WorkerLedger {
    /// By the numbers that reports give them, which need not start at zero.
    ranks: Vec<(usize, RankLoad)>,
    on_silence: OnSilence,
    /// Blocks that a request takes for each that was guessed, learned from reports.
    blocks_for_each_guessed: Option<f64>,
}

/// One request's charge on a worker, to be given back once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct Ticket {
    rank: usize,
    part: RankTicket,
}

/// What is known of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankTold {
    /// Its number.
    pub rank: usize,
    /// What it last said of itself, while that is believed.
    pub report: Option<LoadReport>,
    /// When it last said anything.
    pub heard_at: Option<Duration>,
    /// What it has to do.
    pub view: RankView,
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

/// The most ranks that are kept of one worker; a report of a further one is ignored.
pub const RANKS_MAX: usize = 256;

// === impl WorkerLedger ===

impl WorkerLedger {
    /// A worker of one rank that has not been heard.
    #[must_use]
    pub fn new(on_silence: OnSilence) -> Self {
        Self { ranks: vec![(0, RankLoad::default())], on_silence, blocks_for_each_guessed: None }
    }

    /// What this request is expected to cost here: the guess, corrected by how much requests turned out to take.
    #[must_use]
    pub fn estimate(&self, guess: Charge) -> Charge {
        let factor = self.blocks_for_each_guessed.unwrap_or(1.0);
        Charge::new((guess.blocks as f64 * factor).round() as u64, guess.prefill_tokens)
    }

    /// Charges a request to the least loaded rank that takes it. `guess` is what its size says.
    ///
    /// # Errors
    ///
    /// How the worker stands when no rank does. Nothing was charged.
    pub fn try_charge(
        &mut self,
        guess: Charge,
        thresholds: &BusyThresholds,
    ) -> Result<Ticket, Standing> {
        let charge = self.estimate(guess);
        let free = |rank: &RankLoad| self.rank_standing(rank, charge, thresholds) == Standing::Free;
        let takes = self.ranks.iter().enumerate().filter(|(_, (_, rank))| free(rank));
        match takes.min_by_key(|(_, (_, rank))| rank.view().requests).map(|(index, _)| index) {
            Some(index) => Ok(self.charge_rank(index, charge, guess)),
            None => Err(self.standing(charge, thresholds)),
        }
    }

    /// Charges a request to the least loaded rank, whatever the thresholds say.
    pub fn charge_anyway(&mut self, guess: Charge) -> Ticket {
        let ranks = self.ranks.iter().enumerate();
        let least = ranks.min_by_key(|(_, (_, rank))| rank.view().requests);
        let index = least.map_or(0, |(index, _)| index);
        self.charge_rank(index, self.estimate(guess), guess)
    }

    /// The request went out as a whole at `now`.
    pub fn sent(&mut self, ticket: &mut Ticket, now: Duration) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.sent(&mut ticket.part, now);
        }
    }

    /// The request's answer has begun.
    pub fn prefilled(&mut self, ticket: &mut Ticket) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.prefilled(&mut ticket.part);
        }
    }

    /// The request is over.
    pub fn release(&mut self, ticket: Ticket) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.release(ticket.part);
        }
    }

    /// Takes in what a rank said of itself at `at`. A rank that was not known is from now on.
    pub fn hear(&mut self, rank: usize, report: LoadReport, at: Duration) {
        if report.is_empty() {
            return;
        }
        self.meet(rank);
        if let Some(load) = self.rank(rank) {
            load.hear(report, at);
            let seen = load.blocks_for_each_guessed();
            self.learn(seen);
        }
    }

    /// Drops the ranks that are not among these, once nothing is outstanding on them: the worker has others now.
    pub fn keep_ranks(&mut self, ranks: &[usize]) {
        if ranks.is_empty() {
            return;
        }
        self.ranks.retain(|(number, load)| ranks.contains(number) || load.outstanding() > 0);
        if self.ranks.is_empty() {
            self.ranks.push((ranks[0], RankLoad::default()));
        }
    }

    /// Stops to believe reports made before this. Answers whether any was believed until now.
    pub fn expire(&mut self, before: Duration) -> bool {
        self.ranks.iter_mut().fold(false, |any, (_, rank)| rank.expire(before) | any)
    }

    /// How the worker stands towards a request.
    #[must_use]
    pub fn standing(&self, charge: Charge, thresholds: &BusyThresholds) -> Standing {
        let mut standing = Standing::NotReady;
        for (_, rank) in &self.ranks {
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
        self.ranks.iter().map(|(_, rank)| rank.outstanding()).sum()
    }

    /// Requests that are there as far as is known, also those that others sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.ranks.iter().map(|(_, rank)| rank.view().requests).sum()
    }

    /// Every rank.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = RankTold> {
        self.ranks.iter().map(|(number, rank)| RankTold {
            rank: *number,
            report: rank.report(),
            heard_at: rank.heard_at(),
            view: rank.view(),
        })
    }

    /// Whether any rank's report is there to be believed.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.ranks.iter().any(|(_, rank)| rank.report().is_some())
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
        // While others of the worker are heard, one that is not is gone, or was never there.
        let missing = rank.report().is_none() && self.is_heard();
        let view = rank.view();
        if missing || view.kv == KvUsage::NotReady {
            return Standing::NotReady;
        }
        view.stops(charge, thresholds).map_or(Standing::Free, Standing::Busy)
    }

    fn charge_rank(&mut self, index: usize, charge: Charge, guess: Charge) -> Ticket {
        let (number, rank) = &mut self.ranks[index];
        Ticket { rank: *number, part: rank.charge(charge, guess.blocks) }
    }

    fn rank(&mut self, number: usize) -> Option<&mut RankLoad> {
        self.ranks.iter_mut().find(|(known, _)| *known == number).map(|(_, rank)| rank)
    }

    /// A rank that was never heard is only the stand-in for what is not known, and becomes the first that is.
    fn meet(&mut self, number: usize) {
        if self.rank(number).is_some() {
            return;
        }
        match self.ranks.as_mut_slice() {
            [(stand_in, only)] if only.heard_at().is_none() && only.outstanding() == 0 => {
                *stand_in = number;
            }
            ranks if ranks.len() < RANKS_MAX => self.ranks.push((number, RankLoad::default())),
            _ => {}
        }
    }

    /// Follows the mean over some ten reports, so that one odd report moves it little.
    fn learn(&mut self, seen: Option<f64>) {
        let Some(seen) = seen.filter(|seen| seen.is_finite()) else { return };
        let known = self.blocks_for_each_guessed;
        let factor = known.map_or(seen, |known| known + 0.1 * (seen - known));
        self.blocks_for_each_guessed = Some(factor.clamp(1e-3, 1e3));
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
        let ticket = ledger.try_charge(Charge::LEAST, &half()).unwrap();
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
            (0..200).filter_map(|_| ledger.try_charge(Charge::LEAST, &half()).ok()).collect();
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
    fn what_requests_take_is_learned_from_reports_in_whatever_unit() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        let guess = Charge::new(2, 30);
        assert_eq!(ledger.estimate(guess), guess);
        let mut ticket = ledger.charge_anyway(guess);
        ledger.sent(&mut ticket, Duration::ZERO);
        ledger.hear(0, LoadReport { running: Some(10), ..kv(200, 1000) }, NOW);
        assert_eq!(ledger.estimate(guess), Charge::new(20, 30));
        assert_eq!(
            ledger.estimate(Charge::new(4, 60)),
            Charge::new(40, 60),
            "larger ones take more"
        );
    }

    #[test]
    fn ranks_have_the_numbers_that_reports_give_them() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(3, kv(90, 100), NOW);
        assert_eq!(ledger.ranks().map(|told| told.rank).collect::<Vec<_>>(), [3]);
        assert_ne!(ledger.standing(Charge::LEAST, &half()), Standing::Free, "no free stand-ins");
        ledger.hear(5, kv(90, 100), NOW);
        ledger.keep_ranks(&[5]);
        assert_eq!(ledger.ranks().map(|told| told.rank).collect::<Vec<_>>(), [5]);
        for rank in 0..2 * RANKS_MAX {
            ledger.hear(rank, kv(1, 100), NOW);
        }
        assert_eq!(ledger.ranks().len(), RANKS_MAX);
    }

    #[test]
    fn a_rank_that_is_gone_stays_until_what_is_on_it_has_ended() {
        let mut ledger = WorkerLedger::new(OnSilence::Free);
        ledger.hear(1, kv(1, 100), NOW);
        let ticket = ledger.try_charge(Charge::LEAST, &half()).unwrap();
        ledger.hear(2, kv(1, 100), NOW);
        ledger.keep_ranks(&[2]);
        assert_eq!(ledger.ranks().len(), 2);
        ledger.expire(NOW + Duration::from_millis(1));
        ledger.hear(2, kv(1, 100), NOW + Duration::from_millis(1));
        let next = ledger.try_charge(Charge::LEAST, &half()).unwrap();
        assert_eq!(next.rank(), 2, "nothing new goes there");
        ledger.release(next);
        ledger.release(ticket);
        ledger.keep_ranks(&[2]);
        assert_eq!((ledger.ranks().len(), ledger.outstanding()), (1, 0));
    }
}
