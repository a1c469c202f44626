use super::charge::Charge;
use super::rank::{RankLoad, RankTicket};
use super::report::{KvUsage, LoadReport};
use super::view::RankView;
use crate::routing::thresholds::{BusyThresholds, Threshold};
use std::time::Duration;

/// The treatment of an upstream without a valid load report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnSilence {
    /// Counts as free: only the requests sent to it count.
    #[default]
    Free,
    /// Counts as busy until it reports again.
    Busy,
}

/// The load of one upstream, by rank.
///
/// Pure bookkeeping: a caller that shares it between threads must lock it.
///
/// ```
/// use tidegate_core::routing::{BusyThresholds, Charge, OnSilence, LoadAccount};
///
/// let thresholds = BusyThresholds { active_requests: Some(2), ..BusyThresholds::OFF };
/// let mut account = LoadAccount::new(OnSilence::Free);
/// let first = account.try_charge(Charge::LEAST, &thresholds).expect("two slots");
/// let _second = account.try_charge(Charge::LEAST, &thresholds).expect("two slots");
/// assert!(account.try_charge(Charge::LEAST, &thresholds).is_err());
/// account.release(first);
/// assert!(account.try_charge(Charge::LEAST, &thresholds).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct LoadAccount {
    /// The ranks by the numbers in their reports, which need not start at zero.
    ranks: Vec<(usize, RankLoad)>,
    on_silence: OnSilence,
    /// Requests that may be outstanding at once, over all ranks.
    limit: Option<u32>,
    /// True if requests of other senders count toward the limit, as far as they are reported.
    limits_all_senders: bool,
    /// Blocks that a request takes for each that was guessed, learned from reports.
    blocks_for_each_guessed: Option<f64>,
}

/// One request's charge on an upstream, to be released once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct ChargeTicket {
    rank: usize,
    part: RankTicket,
}

/// The state of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankReport {
    /// The number of the rank.
    pub rank: usize,
    /// The last report unless it has expired.
    pub report: Option<LoadReport>,
    /// The time of the last report, expired or not.
    pub reported_at: Option<Duration>,
    /// The load.
    pub view: RankView,
}

/// The standing of an upstream towards one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At least one rank takes it.
    Free,
    /// Every rank that is ready exceeds a threshold; this is the one of the last rank looked at.
    Busy(Threshold),
    /// Without a valid report, which counts as busy.
    Silent,
    /// Reports that it is still starting.
    NotReady,
}

/// The most ranks of one upstream; reports of further ranks are ignored.
pub const RANKS_MAX: usize = 256;

// === impl LoadAccount ===

impl LoadAccount {
    /// Creates the account of an upstream with one rank and no report.
    #[must_use]
    pub fn new(on_silence: OnSilence) -> Self {
        let ranks = vec![(0, RankLoad::default())];
        let (limit, limits_all_senders) = (None, false);
        Self { ranks, on_silence, limit, limits_all_senders, blocks_for_each_guessed: None }
    }

    /// Returns the concurrency limit.
    #[must_use]
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Sets the concurrency limit: the most requests that may be outstanding at once. Requests beyond a lower
    /// limit stay charged until they end.
    pub fn set_limit(&mut self, limit: Option<u32>) {
        (self.limit, self.limits_all_senders) = (limit, false);
    }

    /// Sets the most requests that may be at the upstream at once, those of other senders included as far as they
    /// are reported.
    pub fn set_limit_of_all_senders(&mut self, limit: u32) {
        (self.limit, self.limits_all_senders) = (Some(limit), true);
    }

    /// Returns the guess in blocks of the size that the upstream reports, if it does.
    fn resized(&self, guess: Charge) -> Charge {
        let size = self.ranks.iter().find_map(|(_, rank)| rank.report()?.tokens_per_block);
        match size {
            Some(tokens) if tokens > 0 => {
                Charge::new(guess.prefill_tokens.div_ceil(tokens), guess.prefill_tokens)
            }
            _ => guess,
        }
    }

    /// Returns the expected cost of a request here: the guess in the upstream's own blocks, corrected by the cost
    /// of earlier requests.
    #[must_use]
    pub fn estimate(&self, guess: Charge) -> Charge {
        let guess = self.resized(guess);
        let factor = self.blocks_for_each_guessed.unwrap_or(1.0);
        Charge::new((guess.blocks as f64 * factor).round() as u64, guess.prefill_tokens)
    }

    /// Charges a request to the least loaded rank that has room. `guess` is the charge by its size.
    ///
    /// # Errors
    ///
    /// The standing of the upstream when no rank has room. Nothing is charged.
    pub fn try_charge(
        &mut self,
        guess: Charge,
        thresholds: &BusyThresholds,
    ) -> Result<ChargeTicket, Standing> {
        if self.is_at_limit() {
            return Err(Standing::Busy(Threshold::ConcurrencyLimit));
        }
        let charge = self.estimate(guess);
        let free = |rank: &RankLoad| self.rank_standing(rank, charge, thresholds) == Standing::Free;
        let takes = self.ranks.iter().enumerate().filter(|(_, (_, rank))| free(rank));
        match takes.min_by_key(|(_, (_, rank))| rank.view().requests).map(|(index, _)| index) {
            Some(index) => Ok(self.charge_rank(index, charge, guess)),
            None => Err(self.standing(charge, thresholds)),
        }
    }

    /// Charges a request to the least loaded rank, whatever the thresholds say.
    pub fn charge_anyway(&mut self, guess: Charge) -> ChargeTicket {
        let ranks = self.ranks.iter().enumerate();
        let least = ranks.min_by_key(|(_, (_, rank))| rank.view().requests);
        let index = least.map_or(0, |(index, _)| index);
        self.charge_rank(index, self.estimate(guess), guess)
    }

    /// Records that the whole request was sent at `now`.
    pub fn sent(&mut self, ticket: &mut ChargeTicket, now: Duration) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.sent(&mut ticket.part, now);
        }
    }

    /// Records that the response has begun.
    pub fn prefilled(&mut self, ticket: &mut ChargeTicket) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.prefilled(&mut ticket.part);
        }
    }

    /// Releases a request that is over.
    pub fn release(&mut self, ticket: ChargeTicket) {
        if let Some(rank) = self.rank(ticket.rank) {
            rank.release(ticket.part);
        }
    }

    /// Records a report of a rank made at `at`. Adds the rank if it is unknown.
    pub fn record_report(&mut self, rank: usize, report: LoadReport, at: Duration) {
        if report.is_empty() {
            return;
        }
        self.add_rank(rank);
        if let Some(load) = self.rank(rank) {
            load.record_report(report, at);
            let seen = load.blocks_for_each_guessed();
            self.learn(seen);
        }
    }

    /// Drops the ranks that are not among these and have no outstanding requests.
    pub fn keep_ranks(&mut self, ranks: &[usize]) {
        if ranks.is_empty() {
            return;
        }
        self.ranks.retain(|(number, load)| ranks.contains(number) || load.outstanding() > 0);
        if self.ranks.is_empty() {
            self.ranks.push((ranks[0], RankLoad::default()));
        }
    }

    /// Expires reports made before this. Returns `true` if any was valid until now.
    pub fn expire(&mut self, before: Duration) -> bool {
        self.ranks.iter_mut().fold(false, |any, (_, rank)| rank.expire(before) | any)
    }

    /// Returns the standing of the upstream towards a request.
    #[must_use]
    pub fn standing(&self, charge: Charge, thresholds: &BusyThresholds) -> Standing {
        let at_limit = self.is_at_limit();
        if thresholds.are_off() || at_limit {
            // The hot path of a gateway without thresholds: only readiness and the limit matter.
            let ready = self.ranks.iter().any(|(_, rank)| rank.is_ready());
            return match (ready, at_limit) {
                (false, _) => Standing::NotReady,
                (true, true) => Standing::Busy(Threshold::ConcurrencyLimit),
                (true, false) => Standing::Free,
            };
        }
        let mut standing = Standing::NotReady;
        for (_, rank) in &self.ranks {
            match self.rank_standing(rank, charge, thresholds) {
                Standing::Free => return Standing::Free,
                // A starting rank says nothing about the load of the others.
                Standing::NotReady => {}
                other => standing = other,
            }
        }
        standing
    }

    /// Returns the number of requests sent that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.ranks.iter().map(|(_, rank)| rank.outstanding()).sum()
    }

    /// Returns the number of requests at the upstream as far as is known, also those of other senders.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.ranks.iter().map(|(_, rank)| rank.view().requests).sum()
    }

    /// Returns the number of requests at the upstream, each counted once: those that have not ended, and as many
    /// of other senders as its reports must include.
    #[must_use]
    pub fn occupancy(&self) -> u64 {
        self.ranks.iter().map(|(_, rank)| rank.occupancy()).sum()
    }

    /// Returns `true` if a valid report has requests in the upstream's own queue.
    #[must_use]
    pub fn has_queue(&self) -> bool {
        let waits = |rank: &RankLoad| rank.report().and_then(|report| report.waiting);
        self.ranks.iter().any(|(_, rank)| waits(rank).is_some_and(|waiting| waiting > 0))
    }

    /// Returns the threshold of these that can't be checked here, because no rank reports its KV cache. Tokens and
    /// requests are counted by the sender itself.
    #[must_use]
    pub fn without_data(&self, thresholds: &BusyThresholds) -> Option<Threshold> {
        let tells_kv =
            |rank: &RankLoad| rank.report().is_some_and(|report| report.kv() != KvUsage::Unknown);
        let is_unknown = || !self.ranks.iter().any(|(_, rank)| tells_kv(rank));
        let is_set = thresholds.active_decode_blocks.is_some();
        (is_set && is_unknown()).then_some(Threshold::ActiveDecodeBlocks)
    }

    /// Returns the state of every rank.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = RankReport> {
        self.ranks.iter().map(|(number, rank)| RankReport {
            rank: *number,
            report: rank.report(),
            reported_at: rank.reported_at(),
            view: rank.view(),
        })
    }

    /// Returns `true` if any rank has a valid report.
    #[must_use]
    pub fn has_report(&self) -> bool {
        self.ranks.iter().any(|(_, rank)| rank.report().is_some())
    }

    fn is_at_limit(&self) -> bool {
        let there = || match self.limits_all_senders {
            true => self.occupancy(),
            false => self.outstanding(),
        };
        self.limit.is_some_and(|limit| there() >= u64::from(limit))
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
        // While other ranks report, one that does not is gone, or never existed.
        let missing = rank.report().is_none() && self.has_report();
        let view = rank.view();
        if missing || view.kv == KvUsage::NotReady {
            return Standing::NotReady;
        }
        view.stops(charge, thresholds).map_or(Standing::Free, Standing::Busy)
    }

    fn charge_rank(&mut self, index: usize, charge: Charge, guess: Charge) -> ChargeTicket {
        let guessed = self.resized(guess).blocks;
        let (number, rank) = &mut self.ranks[index];
        ChargeTicket { rank: *number, part: rank.charge(charge, guessed) }
    }

    fn rank(&mut self, number: usize) -> Option<&mut RankLoad> {
        self.ranks.iter_mut().find(|(known, _)| *known == number).map(|(_, rank)| rank)
    }

    /// Adds a rank. The initial rank without a report only stands for unknown ranks, and becomes the first
    /// known one.
    fn add_rank(&mut self, number: usize) {
        if self.rank(number).is_some() {
            return;
        }
        match self.ranks.as_mut_slice() {
            [(stand_in, only)] if only.reported_at().is_none() && only.outstanding() == 0 => {
                *stand_in = number;
            }
            ranks if ranks.len() < RANKS_MAX => self.ranks.push((number, RankLoad::default())),
            _ => {}
        }
    }

    /// Follows the mean over about ten reports, so that a single outlier has little effect.
    fn learn(&mut self, seen: Option<f64>) {
        let Some(seen) = seen.filter(|seen| seen.is_finite()) else { return };
        let known = self.blocks_for_each_guessed;
        let factor = known.map_or(seen, |known| known + 0.1 * (seen - known));
        self.blocks_for_each_guessed = Some(factor.clamp(1e-3, 1e3));
    }
}

// === impl ChargeTicket ===

impl ChargeTicket {
    /// Returns the rank that was charged.
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
    fn an_upstream_is_busy_only_when_all_its_ranks_are() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(0, kv(90, 100), NOW);
        account.record_report(1, kv(10, 100), NOW);
        let ticket = account.try_charge(Charge::LEAST, &half()).unwrap();
        assert_eq!(ticket.rank(), 1);
        account.record_report(1, kv(90, 100), NOW);
        let standing = account.standing(Charge::LEAST, &half());
        assert_eq!(standing, Standing::Busy(Threshold::ActiveDecodeBlocks));
    }

    #[test]
    fn two_ranks_have_the_places_of_both_and_fill_evenly() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(0, kv(0, 32), NOW);
        account.record_report(1, kv(0, 32), NOW);
        let tickets: Vec<_> =
            (0..200).filter_map(|_| account.try_charge(Charge::LEAST, &half()).ok()).collect();
        assert_eq!(tickets.len(), 32);
        assert_eq!(tickets.iter().filter(|ticket| ticket.rank() == 0).count(), 16);
    }

    #[test]
    fn a_limit_is_exact_over_all_ranks_and_can_change_under_load() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(0, kv(0, 32), NOW);
        account.record_report(1, kv(0, 32), NOW);
        account.set_limit(Some(3));
        let take = |account: &mut LoadAccount| {
            let more = || account.try_charge(Charge::LEAST, &BusyThresholds::OFF).ok();
            std::iter::from_fn(more).collect::<Vec<_>>()
        };
        let mut tickets = take(&mut account);
        assert_eq!(tickets.len(), 3);
        let full = Standing::Busy(Threshold::ConcurrencyLimit);
        assert_eq!(account.standing(Charge::LEAST, &BusyThresholds::OFF), full);
        assert_eq!(account.standing(Charge::LEAST, &half()), full);
        account.set_limit(Some(1));
        tickets.drain(..2).for_each(|ticket| account.release(ticket));
        assert_eq!(account.standing(Charge::LEAST, &BusyThresholds::OFF), full, "one is there");
        account.set_limit(None);
        assert_eq!(account.standing(Charge::LEAST, &BusyThresholds::OFF), Standing::Free);
    }

    #[test]
    fn silence_is_what_the_policy_says_and_a_report_ends_it() {
        let mut account = LoadAccount::new(OnSilence::Busy);
        assert_eq!(account.standing(Charge::LEAST, &half()), Standing::Silent);
        assert_eq!(account.standing(Charge::LEAST, &BusyThresholds::OFF), Standing::Free);
        account.record_report(0, kv(0, 100), NOW);
        assert_eq!(account.standing(Charge::LEAST, &half()), Standing::Free);
        assert!(account.expire(NOW + Duration::from_millis(1)));
        assert_eq!(account.standing(Charge::LEAST, &half()), Standing::Silent);
    }

    #[test]
    fn an_upstream_that_is_starting_is_not_taken_for_idle() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(0, kv(0, 0), NOW);
        assert_eq!(account.standing(Charge::LEAST, &BusyThresholds::OFF), Standing::NotReady);
        account.record_report(0, kv(0, 100), NOW);
        assert_eq!(account.standing(Charge::LEAST, &half()), Standing::Free);
    }

    #[test]
    fn the_last_report_of_a_busy_upstream_does_not_latch() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(0, kv(99, 100), NOW);
        assert_ne!(account.standing(Charge::LEAST, &half()), Standing::Free);
        account.expire(NOW + Duration::from_secs(10));
        assert_eq!(account.standing(Charge::LEAST, &half()), Standing::Free);
    }

    #[test]
    fn what_requests_take_is_learned_from_reports_in_whatever_unit() {
        let mut account = LoadAccount::new(OnSilence::Free);
        let guess = Charge::new(2, 30);
        assert_eq!(account.estimate(guess), guess);
        let mut ticket = account.charge_anyway(guess);
        account.sent(&mut ticket, Duration::ZERO);
        account.record_report(0, LoadReport { running: Some(10), ..kv(200, 1000) }, NOW);
        assert_eq!(account.estimate(guess), Charge::new(20, 30));
        assert_eq!(
            account.estimate(Charge::new(4, 60)),
            Charge::new(40, 60),
            "larger ones take more"
        );
    }

    #[test]
    fn ranks_have_the_numbers_that_reports_give_them() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(3, kv(90, 100), NOW);
        assert_eq!(account.ranks().map(|told| told.rank).collect::<Vec<_>>(), [3]);
        assert_ne!(account.standing(Charge::LEAST, &half()), Standing::Free, "no free stand-ins");
        account.record_report(5, kv(90, 100), NOW);
        account.keep_ranks(&[5]);
        assert_eq!(account.ranks().map(|told| told.rank).collect::<Vec<_>>(), [5]);
        for rank in 0..2 * RANKS_MAX {
            account.record_report(rank, kv(1, 100), NOW);
        }
        assert_eq!(account.ranks().len(), RANKS_MAX);
    }

    #[test]
    fn a_rank_that_is_gone_stays_until_what_is_on_it_has_ended() {
        let mut account = LoadAccount::new(OnSilence::Free);
        account.record_report(1, kv(1, 100), NOW);
        let ticket = account.try_charge(Charge::LEAST, &half()).unwrap();
        account.record_report(2, kv(1, 100), NOW);
        account.keep_ranks(&[2]);
        assert_eq!(account.ranks().len(), 2);
        account.expire(NOW + Duration::from_millis(1));
        account.record_report(2, kv(1, 100), NOW + Duration::from_millis(1));
        let next = account.try_charge(Charge::LEAST, &half()).unwrap();
        assert_eq!(next.rank(), 2, "nothing new goes there");
        account.release(next);
        account.release(ticket);
        account.keep_ranks(&[2]);
        assert_eq!((account.ranks().len(), account.outstanding()), (1, 0));
    }
}
