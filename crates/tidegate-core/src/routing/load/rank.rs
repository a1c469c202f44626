use super::charge::Charge;
use super::report::{KvUsage, LoadReport};
use super::sums::Sums;
use super::view::RankView;
use std::time::Duration;

/// The longest time between sending a request and its count in the server's reports. Charges are kept by stretches
/// of this length.
const SETTLE: Duration = Duration::from_millis(50);

/// Stretches in the ring: 3.2 s, where reports come every few hundred milliseconds. Older charges that no report
/// includes are kept as one sum.
const STRETCHES: usize = 64;

/// The load of one rank: its last report, and the requests sent to it since.
///
/// A charge counts on top of the report until a report arrives that was made at least [`SETTLE`] after it was
/// sent. Counting a request twice for a moment refuses a little early; not counting it would admit too much.
#[derive(Clone, Debug)]
pub struct RankLoad {
    report: Option<TimedReport>,
    /// Requests that have not ended.
    outstanding: Sums,
    /// Requests of these that the report does not include: not yet sent, or sent too recently.
    unreported: Sums,
    /// Requests that the report may include and that have ended since. Without it an upstream with short requests
    /// would look full until the next report.
    ended: Sums,
    /// Requests that were charged and not sent.
    unsent: u64,
    /// Own requests that the report may include.
    own_in_report: u64,
    /// Requests that ended in each recent stretch: a report that was asked for before may still include them.
    ended_in: [u64; STRETCHES],
    recent: [Sums; STRETCHES],
    older: Sums,
    /// Tokens sent in each recent stretch whose response has not begun, and their sum: for servers that do not
    /// report prefill tokens. An older request has been prefilled, also if its response comes as a whole.
    prefilling: [u64; STRETCHES],
    prefilling_sum: u64,
    /// The stretch that charges are counted in now.
    newest: u64,
    /// Charges of stretches below this one are in the report.
    covered: u64,
}

/// One charge, to be released once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct RankTicket {
    /// The stretch in which it was sent; `None` before that.
    stretch: Option<u64>,
    sums: Sums,
}

/// A report and its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimedReport {
    report: LoadReport,
    at: Duration,
    /// True if it is too old to be believed.
    expired: bool,
}

// === impl RankLoad ===

impl Default for RankLoad {
    fn default() -> Self {
        Self {
            report: None,
            outstanding: Sums::default(),
            unreported: Sums::default(),
            ended: Sums::default(),
            unsent: 0,
            own_in_report: 0,
            ended_in: [0; STRETCHES],
            recent: [Sums::default(); STRETCHES],
            older: Sums::default(),
            prefilling: [0; STRETCHES],
            prefilling_sum: 0,
            newest: 0,
            covered: 0,
        }
    }
}

impl RankLoad {
    /// Counts a request that will be sent, with the blocks that were guessed for it. No report includes it
    /// before it [was sent](Self::sent).
    pub fn charge(&mut self, charge: Charge, guessed: u64) -> RankTicket {
        let sums = Sums {
            requests: 1,
            blocks: charge.blocks,
            tokens: charge.prefill_tokens,
            guessed: guessed.max(1),
        };
        self.outstanding.add(sums);
        self.unreported.add(sums);
        self.prefilling_sum += sums.tokens;
        self.unsent += 1;
        RankTicket { stretch: None, sums }
    }

    /// Records that the whole request was sent at `now`. A second call does nothing.
    pub fn sent(&mut self, ticket: &mut RankTicket, now: Duration) {
        if ticket.stretch.is_none() {
            self.advance(now);
            self.unsent = self.unsent.saturating_sub(1);
            ticket.stretch = Some(self.newest);
            self.recent[slot(self.newest)].add(ticket.sums);
            self.prefilling[slot(self.newest)] += ticket.sums.tokens;
        }
    }

    /// Records that the response has begun: the prefill is over.
    pub fn prefilled(&mut self, ticket: &mut RankTicket) {
        let tokens = std::mem::take(&mut ticket.sums.tokens);
        self.take_off(ticket.stretch, Sums { tokens, ..Sums::default() });
    }

    /// Releases a request that is over.
    pub fn release(&mut self, ticket: RankTicket) {
        match ticket.stretch {
            Some(_) => self.ended_in[slot(self.newest)] += 1,
            None => self.unsent = self.unsent.saturating_sub(1),
        }
        self.take_off(ticket.stretch, ticket.sums);
    }

    /// Records a report made at `at`: for a scrape the time of the request, for a response header the time of
    /// arrival. A report older than the last is ignored.
    pub fn record_report(&mut self, report: LoadReport, at: Duration) {
        if self.report.is_some_and(|last| last.at > at) {
            return;
        }
        self.advance(at);
        self.own_in_report = self.own_at(stretch_of(at));
        self.report = Some(TimedReport { report, at, expired: false });
        self.ended = Sums::default();
        let (covered, oldest) = (stretch_of(at.saturating_sub(SETTLE)), self.oldest_recent());
        // Charges older than the ring are one sum, which a report includes as a whole or not at all.
        if covered < oldest || covered <= self.covered {
            return;
        }
        self.unreported.subtract(std::mem::take(&mut self.older));
        for stretch in self.covered.max(oldest)..covered {
            self.unreported.subtract(std::mem::take(&mut self.recent[slot(stretch)]));
        }
        self.covered = covered;
    }

    /// Expires a report made before this. Returns `true` if it was valid until now.
    pub fn expire(&mut self, before: Duration) -> bool {
        match &mut self.report {
            Some(last) if last.at < before => !std::mem::replace(&mut last.expired, true),
            _ => false,
        }
    }

    /// Returns the time of the last report, expired or not.
    #[must_use]
    pub fn reported_at(&self) -> Option<Duration> {
        self.report.map(|last| last.at)
    }

    /// Returns the last report unless it has expired.
    #[must_use]
    pub fn report(&self) -> Option<LoadReport> {
        self.report.filter(|last| !last.expired).map(|last| last.report)
    }

    /// Returns `false` if the rank reports that it is still starting.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.report().is_none_or(|report| report.kv() != KvUsage::NotReady)
    }

    /// Returns the blocks that a request takes for each that was guessed, by the last report and the requests
    /// in it.
    #[must_use]
    pub fn blocks_for_each_guessed(&self) -> Option<f64> {
        let report = self.report()?;
        let (KvUsage::Blocks { active, .. }, Some(running)) = (report.kv(), report.running) else {
            return None;
        };
        let covered = self.covered_outstanding();
        if active == 0 || running == 0 || covered.requests == 0 {
            return None;
        }
        let guessed_each = covered.guessed as f64 / covered.requests as f64;
        Some(active as f64 / running as f64 / guessed_each)
    }

    /// Returns the number of requests sent that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.outstanding.requests
    }

    /// Returns the number of requests at the rank, each counted once: those that have not ended, and as many of
    /// other senders as the report must include. One that was sent just before the report counts as our own.
    #[must_use]
    pub fn occupancy(&self) -> u64 {
        let reported = self.report().and_then(|report| report.requests()).unwrap_or(0);
        self.outstanding.requests.saturating_add(reported.saturating_sub(self.own_in_report))
    }

    /// Returns the load, as far as it is known.
    #[must_use]
    pub fn view(&self) -> RankView {
        let report = self.report().unwrap_or_default();
        // The sum of ended requests is a guess and the report is not: it never lowers the load below the requests
        // that the report includes and that have not ended.
        let covered = self.covered_outstanding();
        let left = |all: u64, ended: u64, own: u64| all.saturating_sub(ended).max(own.min(all));
        let kv = match report.kv() {
            KvUsage::Blocks { active, total } => {
                let active = active.saturating_add(report.waiting_blocks());
                let active = left(active, self.ended.blocks, covered.blocks);
                KvUsage::Blocks { active: active.saturating_add(self.unreported.blocks), total }
            }
            unknown => unknown,
        };
        let prefill_tokens = match report.active_prefill_tokens {
            Some(tokens) => tokens.saturating_add(self.unreported.tokens),
            None => self.prefilling_sum,
        };
        // Requests that have not ended are there, also if the report was made too early to include them.
        let reported = report.requests().map_or(0, |requests| {
            let left = left(requests, self.ended.requests, covered.requests);
            left.saturating_add(self.unreported.requests)
        });
        let requests = reported.max(self.outstanding.requests);
        RankView { kv, prefill_tokens, requests, unreported: self.unreported }
    }

    fn take_off(&mut self, stretch: Option<u64>, sums: Sums) {
        self.outstanding.subtract(sums);
        let Some(stretch) = stretch else {
            self.unreported.subtract(sums);
            self.prefilling_sum = self.prefilling_sum.saturating_sub(sums.tokens);
            return;
        };
        if stretch >= self.oldest_recent() {
            let tokens = sums.tokens.min(self.prefilling[slot(stretch)]);
            self.prefilling[slot(stretch)] -= tokens;
            self.prefilling_sum = self.prefilling_sum.saturating_sub(tokens);
        }
        if self.report.is_some_and(|last| stretch <= stretch_of(last.at)) {
            self.ended.add(sums);
        }
        if stretch < self.covered {
            return;
        }
        self.unreported.subtract(sums);
        if stretch >= self.oldest_recent() {
            self.recent[slot(stretch)].subtract(sums);
        } else {
            self.older.subtract(sums);
        }
    }

    /// Returns the own requests that a report made in this stretch may include.
    fn own_at(&self, stretch: u64) -> u64 {
        let since = |stretch: u64| stretch.max(self.oldest_recent())..=self.newest;
        let sent_later: u64 =
            since(stretch + 1).map(|later| self.recent[slot(later)].requests).sum();
        let ended_since: u64 = since(stretch).map(|later| self.ended_in[slot(later)]).sum();
        let not_there = self.unsent.saturating_add(sent_later);
        self.outstanding.requests.saturating_sub(not_there).saturating_add(ended_since)
    }

    /// Returns the requests that have not ended and that the report includes.
    fn covered_outstanding(&self) -> Sums {
        let mut covered = self.outstanding;
        covered.subtract(self.unreported);
        covered
    }

    /// Opens the stretch of `now`, and adds those that leave the ring to one sum. A time before the newest
    /// stretch, from a thread that waited after it read the clock, counts in the newest stretch.
    fn advance(&mut self, now: Duration) {
        let current = stretch_of(now);
        let steps = current.saturating_sub(self.newest).min(STRETCHES as u64);
        for stretch in current.saturating_sub(steps) + 1..=current {
            let fallen = std::mem::take(&mut self.recent[slot(stretch)]);
            self.older.add(fallen);
            self.ended_in[slot(stretch)] = 0;
            let prefilled = std::mem::take(&mut self.prefilling[slot(stretch)]);
            self.prefilling_sum = self.prefilling_sum.saturating_sub(prefilled);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::thresholds::{BusyThresholds, Threshold};

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

    fn send(rank: &mut RankLoad, charge: Charge, now: Duration) -> RankTicket {
        let mut ticket = rank.charge(charge, charge.blocks);
        rank.sent(&mut ticket, now);
        ticket
    }

    /// Sends as many as are let through.
    fn fill(rank: &mut RankLoad, thresholds: &BusyThresholds, now: Duration) -> Vec<RankTicket> {
        let mut tickets = Vec::new();
        while rank.view().stops(Charge::LEAST, thresholds).is_none() && tickets.len() < 1000 {
            tickets.push(send(rank, Charge::LEAST, now));
        }
        tickets
    }

    #[test]
    fn busy_is_strictly_more_than_the_threshold() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(85, 100), ms(0));
        assert_eq!(rank.view().exceeded(&blocks(0.85)), None);
        assert_eq!(rank.view().stops(Charge::LEAST, &blocks(0.85)), None);
        rank.record_report(kv(87, 100), ms(10));
        assert_eq!(rank.view().exceeded(&blocks(0.85)), Some(Threshold::ActiveDecodeBlocks));
        let tokens = LoadReport { active_prefill_tokens: Some(12_000), ..LoadReport::default() };
        let most = BusyThresholds { active_prefill_tokens: Some(10_000), ..BusyThresholds::OFF };
        rank.record_report(tokens, ms(20));
        assert_eq!(rank.view().exceeded(&most), Some(Threshold::ActivePrefillTokens));
    }

    #[test]
    fn what_was_sent_since_the_report_counts_and_no_more_than_fits_is_sent() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(18, 100), ms(0));
        assert_eq!(fill(&mut rank, &blocks(0.50), ms(60)).len(), 32);
        let mut rank = RankLoad::default();
        assert_eq!(fill(&mut rank, &requests(32), ms(60)).len(), 32);
    }

    #[test]
    fn a_report_that_has_it_replaces_what_was_sent_and_an_early_one_does_not() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(0, 100), ms(0));
        let tickets = fill(&mut rank, &blocks(0.50), ms(100));
        assert_eq!(tickets.len(), 50);
        // Asked just after they were sent, the server had none of them yet.
        rank.record_report(kv(0, 100), ms(101));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        // Later it has them all, and they turn out to be half as large as was thought.
        rank.record_report(kv(25, 100), ms(400));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 25, total: 100 });
        for ticket in tickets {
            rank.release(ticket);
        }
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 }, "room at once");
        assert_eq!(rank.outstanding(), 0);
        rank.record_report(kv(7, 100), ms(800));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 7, total: 100 });
    }

    #[test]
    fn a_report_that_never_comes_does_not_hold_a_place_for_ever() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(0, 100), ms(0));
        let tickets = fill(&mut rank, &blocks(0.50), ms(100));
        // Far beyond what is kept apart.
        let late = send(&mut rank, Charge::LEAST, ms(60_000));
        for ticket in tickets {
            rank.release(ticket);
        }
        rank.release(late);
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 });
        assert_eq!(fill(&mut rank, &blocks(0.50), ms(60_100)).len(), 50);
    }

    #[test]
    fn one_that_is_larger_than_all_room_gets_through_alone() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(0, 100), ms(0));
        let huge = Charge::new(90, 50_000);
        assert_eq!(rank.view().stops(huge, &blocks(0.50)), None);
        let ticket = send(&mut rank, huge, ms(60));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        rank.release(ticket);
        assert_eq!(rank.view().stops(Charge::LEAST, &blocks(0.50)), None);
    }

    #[test]
    fn tokens_count_until_the_answer_begins_when_nobody_reports_them() {
        let mut rank = RankLoad::default();
        let mut ticket = send(&mut rank, Charge::new(1, 800), ms(0));
        assert_eq!(rank.view().prefill_tokens, 800);
        rank.prefilled(&mut ticket);
        assert_eq!(rank.view().prefill_tokens, 0);
        rank.release(ticket);
        assert_eq!((rank.view().requests, rank.view().prefill_tokens), (0, 0));
    }

    #[test]
    fn a_clock_that_steps_back_is_counted_all_the_same() {
        let mut rank = RankLoad::default();
        let (a, b) =
            (send(&mut rank, Charge::LEAST, ms(500)), send(&mut rank, Charge::LEAST, ms(100)));
        rank.record_report(kv(0, 100), ms(400));
        rank.release(a);
        rank.release(b);
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 });
    }

    #[test]
    fn what_was_not_sent_yet_is_in_no_report_however_late() {
        let mut rank = RankLoad::default();
        rank.record_report(kv(0, 64), ms(0));
        let mut waiting: Vec<_> = (0..32).map(|_| rank.charge(Charge::LEAST, 1)).collect();
        // It waits in a line, or its body comes slowly.
        rank.record_report(kv(0, 64), ms(3_000));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        waiting.iter_mut().for_each(|ticket| rank.sent(ticket, ms(3_010)));
        rank.record_report(kv(0, 64), ms(3_020));
        assert!(rank.view().stops(Charge::LEAST, &blocks(0.50)).is_some());
        rank.record_report(kv(32, 64), ms(3_500));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 32, total: 64 });
    }

    #[test]
    fn requests_shorter_than_a_report_s_delay_free_their_places_when_they_end() {
        let mut rank = RankLoad::default();
        let running = |running| LoadReport { running: Some(running), ..LoadReport::default() };
        rank.record_report(running(0), ms(0));
        let tickets = fill(&mut rank, &requests(32), ms(1_000));
        // Made just after they were sent, and it has them all.
        rank.record_report(running(32), ms(1_010));
        assert_eq!(rank.view().requests, 64, "twice for a moment: nobody can know");
        for ticket in tickets {
            rank.release(ticket);
        }
        assert_eq!(rank.view().requests, 0);
    }

    #[test]
    fn what_ended_takes_off_no_more_than_the_others_leave() {
        let mut rank = RankLoad::default();
        let large = send(&mut rank, Charge::new(75, 1), ms(0));
        let small: Vec<_> = (0..10).map(|_| send(&mut rank, Charge::new(8, 1), ms(0))).collect();
        rank.record_report(kv(85, 100), ms(500));
        small.into_iter().for_each(|ticket| rank.release(ticket));
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 75, total: 100 });
        rank.release(large);
        assert_eq!(rank.view().kv, KvUsage::Blocks { active: 0, total: 100 });
    }

    #[test]
    fn a_prompt_that_nobody_reports_is_prefilled_after_some_seconds() {
        let mut rank = RankLoad::default();
        let ticket = send(&mut rank, Charge::new(1, 800), ms(0));
        assert_eq!(rank.view().prefill_tokens, 800);
        let later = send(&mut rank, Charge::new(1, 5), ms(4_000));
        assert_eq!(rank.view().prefill_tokens, 5, "its answer comes as a whole, later");
        rank.release(ticket);
        rank.release(later);
        assert_eq!(rank.view().prefill_tokens, 0);
    }
}
