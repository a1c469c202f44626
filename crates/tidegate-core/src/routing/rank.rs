use super::{BusyThresholds, Charge, KvUsage, LoadReport, Threshold};
use std::time::Duration;

/// How long a request may be on its way before a report that does not have it can be believed: the time to reach
/// the server and to be counted there. Charges are kept by stretches of this length.
const SETTLE: Duration = Duration::from_millis(50);

/// Stretches that are kept apart. Reports come every few hundred milliseconds, and this is above three seconds;
/// what is older and was still not reported is kept as one.
const STRETCHES: usize = 64;

/// What is known of the load of one rank: what it said of itself, and what was sent to it since.
///
/// A charge counts on top of the report until a report comes that was made at least [`SETTLE`] after it. Counting
/// something twice for a moment refuses a little early; counting it never would admit too much.
#[derive(Clone, Debug)]
pub struct RankLoad {
    report: Option<Heard>,
    /// Everything sent that has not ended.
    outstanding: Sums,
    /// Of that, what the report does not have.
    unreported: Sums,
    /// What the report has and has ended since. Without it a worker whose requests are short would look full from
    /// one report to the next.
    ended: Sums,
    recent: [Sums; STRETCHES],
    older: Sums,
    /// The stretch that charges are counted in now.
    newest: u64,
    /// Charges of stretches below this one are in the report.
    covered: u64,
}

/// One charge, to be given back once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct RankTicket {
    stretch: u64,
    blocks: u64,
    tokens: u64,
}

/// A report, and when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    report: LoadReport,
    at: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    requests: u64,
    blocks: u64,
    tokens: u64,
}

/// What a rank has to do at a moment, in the terms of the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankView {
    /// The KV cache, with what was sent since.
    pub kv: KvUsage,
    /// Tokens being prefilled, with what was sent since.
    pub prefill_tokens: u64,
    /// Requests there, with what was sent since.
    pub requests: u64,
    unreported: Sums,
}

// === impl RankLoad ===

impl Default for RankLoad {
    fn default() -> Self {
        Self {
            report: None,
            outstanding: Sums::default(),
            unreported: Sums::default(),
            ended: Sums::default(),
            recent: [Sums::default(); STRETCHES],
            older: Sums::default(),
            newest: 0,
            covered: 0,
        }
    }
}

impl RankLoad {
    /// Counts a request that is about to be sent, at `now`.
    pub fn charge(&mut self, charge: Charge, now: Duration) -> RankTicket {
        self.advance(now);
        let ticket = RankTicket {
            stretch: self.newest,
            blocks: charge.blocks,
            tokens: charge.prefill_tokens,
        };
        let sums = Sums { requests: 1, blocks: ticket.blocks, tokens: ticket.tokens };
        self.outstanding.add(sums);
        self.unreported.add(sums);
        self.recent[slot(self.newest)].add(sums);
        ticket
    }

    /// The request's answer has begun: nothing of it is prefilled any more.
    pub fn prefilled(&mut self, ticket: &mut RankTicket) {
        let tokens = std::mem::take(&mut ticket.tokens);
        self.take_off(ticket.stretch, Sums { requests: 0, blocks: 0, tokens });
    }

    /// The request is over.
    pub fn release(&mut self, ticket: RankTicket) {
        let sums = Sums { requests: 1, blocks: ticket.blocks, tokens: ticket.tokens };
        self.take_off(ticket.stretch, sums);
    }

    /// Takes in what the rank said of itself at `at`: for a scrape the moment it was asked, for an answer's
    /// header the moment it came. One that is older than the last is ignored.
    pub fn hear(&mut self, report: LoadReport, at: Duration) {
        if self.report.is_some_and(|last| last.at > at) {
            return;
        }
        self.advance(at);
        self.report = Some(Heard { report, at });
        self.ended = Sums::default();
        let (covered, oldest) = (stretch_of(at.saturating_sub(SETTLE)), self.oldest_recent());
        // What is older than the ring is one sum, which a report has as a whole or not at all.
        if covered < oldest || covered <= self.covered {
            return;
        }
        self.unreported.subtract(std::mem::take(&mut self.older));
        for stretch in self.covered.max(oldest)..covered {
            self.unreported.subtract(std::mem::take(&mut self.recent[slot(stretch)]));
        }
        self.covered = covered;
    }

    /// Forgets the report: it is too old to be believed.
    pub fn forget(&mut self) {
        self.report = None;
    }

    /// When the last report was made.
    #[must_use]
    pub fn heard_at(&self) -> Option<Duration> {
        self.report.map(|heard| heard.at)
    }

    /// What the rank last said of itself.
    #[must_use]
    pub fn report(&self) -> Option<LoadReport> {
        self.report.map(|heard| heard.report)
    }

    /// Requests sent to it that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.outstanding.requests
    }

    /// What it has to do, as far as can be known.
    #[must_use]
    pub fn view(&self) -> RankView {
        let report = self.report().unwrap_or_default();
        let kv = match report.kv() {
            KvUsage::Blocks { active, total } => {
                let left = active.saturating_sub(self.ended.blocks);
                KvUsage::Blocks { active: left.saturating_add(self.unreported.blocks), total }
            }
            unknown => unknown,
        };
        let prefill_tokens = match report.active_prefill_tokens {
            Some(tokens) => {
                tokens.saturating_sub(self.ended.tokens).saturating_add(self.unreported.tokens)
            }
            // Nobody tells, so what was sent and has not begun to answer is the best that is known.
            None => self.outstanding.tokens,
        };
        // What was sent and has not ended is there, whatever a report says that was made too early to have it.
        let told = report.requests().map_or(0, |told| {
            told.saturating_sub(self.ended.requests).saturating_add(self.unreported.requests)
        });
        let requests = told.max(self.outstanding.requests);
        RankView { kv, prefill_tokens, requests, unreported: self.unreported }
    }

    fn take_off(&mut self, stretch: u64, sums: Sums) {
        self.outstanding.subtract(sums);
        if stretch < self.covered {
            self.ended.add(sums);
            return;
        }
        self.unreported.subtract(sums);
        if stretch >= self.oldest_recent() {
            self.recent[slot(stretch)].subtract(sums);
        } else {
            self.older.subtract(sums);
        }
    }

    /// Opens the stretch of `now`, and puts those that fall out of the ring together. Time that runs backwards,
    /// by two threads that read a clock and then wait for each other, counts in the newest stretch.
    fn advance(&mut self, now: Duration) {
        let current = stretch_of(now);
        let steps = current.saturating_sub(self.newest).min(STRETCHES as u64);
        for stretch in current.saturating_sub(steps) + 1..=current {
            let fallen = std::mem::take(&mut self.recent[slot(stretch)]);
            self.older.add(fallen);
        }
        self.newest = self.newest.max(current);
    }

    fn oldest_recent(&self) -> u64 {
        (self.newest + 1).saturating_sub(STRETCHES as u64)
    }
}

fn stretch_of(at: Duration) -> u64 {
    u64::try_from(at.as_millis() / SETTLE.as_millis()).unwrap_or(u64::MAX / 2)
}

fn slot(stretch: u64) -> usize {
    (stretch % STRETCHES as u64) as usize
}

// === impl Sums ===

impl Sums {
    fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    fn subtract(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.tokens = self.tokens.saturating_sub(other.tokens);
    }
}

// === impl RankView ===

impl RankView {
    /// The first threshold that is exceeded, strictly. `None`: the rank is not busy.
    #[must_use]
    pub fn exceeded(&self, thresholds: &BusyThresholds) -> Option<Threshold> {
        self.over(thresholds, 0, 0, 0)
    }

    /// The first threshold that stands in the way of this request. `None`: it can be sent.
    ///
    /// By a report alone the threshold must be exceeded, as the rule has it. As soon as something was sent that
    /// no report has yet, the request itself counts too: of many that come at once, exactly those are let
    /// through for which there is room, and one that is larger than all room still gets through alone. What one
    /// request adds to the number of requests is no guess, so there it always counts.
    #[must_use]
    pub fn stops(&self, charge: Charge, thresholds: &BusyThresholds) -> Option<Threshold> {
        let when_pending = |pending: u64, cost: u64| if pending > 0 { cost } else { 0 };
        let blocks = when_pending(self.unreported.blocks, charge.blocks);
        let tokens = when_pending(self.unreported.tokens, charge.prefill_tokens);
        self.over(thresholds, blocks, tokens, 1)
    }

    fn over(
        &self,
        thresholds: &BusyThresholds,
        blocks: u64,
        tokens: u64,
        requests: u64,
    ) -> Option<Threshold> {
        if let (Some(most), KvUsage::Blocks { active, total }) =
            (thresholds.active_decode_blocks, self.kv)
            && active.saturating_add(blocks) as f64 / total as f64 > most
        {
            return Some(Threshold::ActiveDecodeBlocks);
        }
        let beyond = |most: Option<u64>, load: u64, more: u64| {
            most.is_some_and(|most| load.saturating_add(more) > most)
        };
        if beyond(thresholds.active_prefill_tokens, self.prefill_tokens, tokens) {
            return Some(Threshold::ActivePrefillTokens);
        }
        if beyond(thresholds.active_requests, self.requests, requests) {
            return Some(Threshold::ActiveRequests);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn kv(active: u64, total: u64) -> LoadReport {
        LoadReport {
            active_decode_blocks: Some(active),
            kv_total_blocks: Some(total),
            ..LoadReport::default()
        }
    }

    fn blocks(ratio: f64) -> BusyThresholds {
        BusyThresholds { active_decode_blocks: Some(ratio), ..BusyThresholds::OFF }
    }

    fn requests(most: u64) -> BusyThresholds {
        BusyThresholds { active_requests: Some(most), ..BusyThresholds::OFF }
    }

    /// Sends as many as are let through.
    fn fill(rank: &mut RankLoad, thresholds: &BusyThresholds, now: Duration) -> Vec<RankTicket> {
        let mut tickets = Vec::new();
        while rank.view().stops(Charge::LEAST, thresholds).is_none() && tickets.len() < 1000 {
            tickets.push(rank.charge(Charge::LEAST, now));
        }
        tickets
    }

    #[test]
    fn busy_is_strictly_more_than_the_threshold() {
        let mut rank = RankLoad::default();
        rank.hear(kv(85, 100), ms(0));
        assert_eq!(rank.view().exceeded(&blocks(0.85)), None);
        assert_eq!(rank.view().stops(Charge::LEAST, &blocks(0.85)), None);
        rank.hear(kv(87, 100), ms(10));
        assert_eq!(rank.view().exceeded(&blocks(0.85)), Some(Threshold::ActiveDecodeBlocks));
        let tokens = LoadReport { active_prefill_tokens: Some(12_000), ..LoadReport::default() };
        let most = BusyThresholds { active_prefill_tokens: Some(10_000), ..BusyThresholds::OFF };
        rank.hear(tokens, ms(20));
        assert_eq!(rank.view().exceeded(&most), Some(Threshold::ActivePrefillTokens));
    }

    #[test]
    fn what_was_sent_since_the_report_counts_and_no_more_than_fits_is_sent() {
        let mut rank = RankLoad::default();
        rank.hear(kv(18, 100), ms(0));
        assert_eq!(fill(&mut rank, &blocks(0.50), ms(60)).len(), 32);
        let mut rank = RankLoad::default();
        assert_eq!(fill(&mut rank, &requests(32), ms(60)).len(), 32);
    }

    #[test]
    fn a_report_that_has_it_replaces_what_was_sent_and_an_early_one_does_not() {
        let mut rank = RankLoad::default();
        rank.hear(kv(0, 100), ms(0));
        let tickets = fill(&mut rank, &blocks(0.50), ms(100));
        assert_eq!(tickets.len(), 50);
        // Asked just after they were sent, the server had none of them yet.
        rank.hear(kv(0, 100), ms(101));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        // Later it has them all, and they turn out to be half as large as was thought.
        rank.hear(kv(25, 100), ms(400));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 25, total: 100 });
        for ticket in tickets {
            rank.release(ticket);
        }
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 }, "room at once");
        assert_eq!(rank.outstanding(), 0);
        rank.hear(kv(7, 100), ms(800));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 7, total: 100 });
    }

    #[test]
    fn a_report_that_never_comes_does_not_hold_a_place_for_ever() {
        let mut rank = RankLoad::default();
        rank.hear(kv(0, 100), ms(0));
        let tickets = fill(&mut rank, &blocks(0.50), ms(100));
        // Far beyond what is kept apart.
        let late = rank.charge(Charge::LEAST, ms(60_000));
        for ticket in tickets {
            rank.release(ticket);
        }
        rank.release(late);
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 });
        assert_eq!(fill(&mut rank, &blocks(0.50), ms(60_100)).len(), 50);
    }

    #[test]
    fn requests_are_what_is_there_even_if_a_report_says_less() {
        let mut rank = RankLoad::default();
        let tickets = fill(&mut rank, &requests(32), ms(100));
        let none = LoadReport { running: Some(0), waiting: Some(0), ..LoadReport::default() };
        rank.hear(none, ms(900));
        assert_eq!(rank.view().requests, 32);
        assert!(rank.view().stops(Charge::LEAST, &requests(32)).is_some());
        for ticket in tickets {
            rank.release(ticket);
        }
        assert_eq!(rank.view().requests, 0);
    }

    #[test]
    fn one_that_is_larger_than_all_room_gets_through_alone() {
        let mut rank = RankLoad::default();
        rank.hear(kv(0, 100), ms(0));
        let huge = Charge::new(90, 50_000);
        assert_eq!(rank.view().stops(huge, &blocks(0.50)), None);
        let ticket = rank.charge(huge, ms(60));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        rank.release(ticket);
        assert_eq!(rank.view().stops(Charge::LEAST, &blocks(0.50)), None);
    }

    #[test]
    fn tokens_count_until_the_answer_begins_when_nobody_reports_them() {
        let mut rank = RankLoad::default();
        let mut ticket = rank.charge(Charge::new(1, 800), ms(0));
        assert_eq!(rank.view().prefill_tokens, 800);
        rank.prefilled(&mut ticket);
        assert_eq!(rank.view().prefill_tokens, 0);
        rank.release(ticket);
        assert_eq!((rank.view().requests, rank.view().prefill_tokens), (0, 0));
    }

    #[test]
    fn a_clock_that_steps_back_is_counted_all_the_same() {
        let mut rank = RankLoad::default();
        let (a, b) = (rank.charge(Charge::LEAST, ms(500)), rank.charge(Charge::LEAST, ms(100)));
        rank.hear(kv(0, 100), ms(400));
        rank.release(a);
        rank.release(b);
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 });
    }
}
