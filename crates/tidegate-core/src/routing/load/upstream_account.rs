use super::account::{ChargeTicket, LoadAccount, OnSilence, Standing};
use super::charge::Charge;
use super::expected_wait::ExpectedWait;
use super::report::LoadReport;
use crate::limit::{ConcurrencyLimit, LimitConfig, LimitSnapshot, Started, UpstreamOutcome};
use crate::routing::thresholds::BusyThresholds;
use std::time::Duration;

/// The concurrency limit of an upstream: the most requests outstanding at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum UpstreamLimit {
    /// None.
    #[default]
    Off,
    /// This many.
    Fixed(u32),
    /// Found from the requests themselves, by this configuration.
    Auto(LimitConfig),
}

/// The load of one upstream and the limit that it is held to.
///
/// Pure bookkeeping: a caller that shares it between threads must lock it.
#[derive(Clone, Debug)]
pub struct UpstreamAccount {
    load: LoadAccount,
    found: Option<Box<ConcurrencyLimit>>,
}

/// One request's charge on an upstream, to be released once.
#[derive(Debug)]
#[must_use = "a ticket that is not given back stays charged"]
pub struct UpstreamTicket {
    charge: ChargeTicket,
    started: Option<Started>,
    /// True while the whole request is at the upstream and no response has begun.
    is_awaited: bool,
}

// === impl UpstreamAccount ===

impl UpstreamAccount {
    /// Creates the account of an upstream that nothing was sent to.
    #[must_use]
    pub fn new(on_silence: OnSilence, limit: UpstreamLimit) -> Self {
        let mut load = LoadAccount::new(on_silence);
        let found = match limit {
            UpstreamLimit::Off => None,
            UpstreamLimit::Fixed(limit) => {
                load.set_limit(Some(limit));
                None
            }
            UpstreamLimit::Auto(config) => {
                let found = ConcurrencyLimit::new(config);
                load.set_limit(Some(found.limit()));
                Some(Box::new(found))
            }
        };
        Self { load, found }
    }

    /// Returns the load.
    #[must_use]
    pub fn load(&self) -> &LoadAccount {
        &self.load
    }

    /// Returns the state of a limit that is found.
    #[must_use]
    pub fn found_limit(&self) -> Option<LimitSnapshot> {
        self.found.as_ref().map(|found| found.snapshot())
    }

    /// Returns what is known of the wait of one more request, with this latency. The capacity is a limit that is
    /// configured or reported: one that is found by experiments changes with them.
    #[must_use]
    pub fn expected_wait(&self, latency_us: Option<u64>) -> ExpectedWait {
        let is_capacity = self.found.as_ref().is_none_or(|found| found.is_reported());
        ExpectedWait {
            requests: self.load.occupancy(),
            capacity: self.load.limit().filter(|_| is_capacity),
            latency_us,
            has_queue: self.load.has_queue(),
        }
    }

    /// Returns `true` while the upstream does not respond and is only probed.
    #[must_use]
    pub fn is_only_probed(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.is_open())
    }

    /// Records that the upstream is back: it was reached again, or began to respond. A limit that was closed by
    /// the outage resumes at half of what it was. Returns `true` if it did.
    pub fn recover(&mut self, now: Duration) -> bool {
        let is_back = self.found.as_mut().is_some_and(|found| found.on_recovery(now));
        if is_back {
            self.enforce(now);
        }
        is_back
    }

    /// Charges a request within the limit and the thresholds.
    ///
    /// # Errors
    ///
    /// The standing of the upstream when it has no room. Nothing is charged.
    pub fn try_charge(
        &mut self,
        guess: Charge,
        thresholds: &BusyThresholds,
        now: Duration,
    ) -> Result<UpstreamTicket, Standing> {
        let charge = self.load.try_charge(guess, thresholds)?;
        Ok(self.start(charge, now))
    }

    /// Charges a request whatever the limit and the thresholds say.
    pub fn charge_anyway(&mut self, guess: Charge, now: Duration) -> UpstreamTicket {
        let charge = self.load.charge_anyway(guess);
        self.start(charge, now)
    }

    /// Records that the whole request was sent at `now`.
    pub fn sent(&mut self, ticket: &mut UpstreamTicket, now: Duration) {
        self.load.sent(&mut ticket.charge, now);
        ticket.is_awaited = true;
    }

    /// Records that the response has begun.
    pub fn prefilled(&mut self, ticket: &mut UpstreamTicket) {
        self.load.prefilled(&mut ticket.charge);
        ticket.is_awaited = false;
    }

    /// Releases a request that ended so. `is_awaited`: requests wait for the upstream.
    pub fn release(
        &mut self,
        ticket: UpstreamTicket,
        outcome: UpstreamOutcome,
        is_awaited: bool,
        now: Duration,
    ) {
        let UpstreamTicket { charge, started, is_awaited: was_awaited } = ticket;
        self.load.release(charge);
        let outcome = match outcome {
            UpstreamOutcome::Ignored if was_awaited => UpstreamOutcome::Abandoned,
            outcome => outcome,
        };
        if let (Some(found), Some(started)) = (&mut self.found, started) {
            found.on_waiting(now, is_awaited);
            found.on_end(now, started, outcome);
            self.enforce(now);
        }
    }

    /// Sets the time that the caller takes to notice a response that has arrived: no latency of the upstream.
    pub const fn set_own_delay(&mut self, delay: Duration) {
        if let Some(found) = &mut self.found {
            found.set_own_delay(delay);
        }
    }

    /// Records a report of a rank made at `at`, known at `now`. What the upstream reports of its running and
    /// waiting requests wins over a limit that is found.
    pub fn record_report(&mut self, rank: usize, report: LoadReport, at: Duration, now: Duration) {
        self.load.record_report(rank, report, at);
        let Some(found) = &mut self.found else { return };
        let mut sums: Option<(u64, u64)> = None;
        for report in self.load.ranks().filter_map(|rank| rank.report) {
            if let (Some(running), Some(waiting)) = (report.running, report.waiting) {
                let (all_running, all_waiting) = sums.unwrap_or_default();
                sums = Some((all_running + running, all_waiting + waiting));
            }
        }
        if let Some((running, waiting)) = sums {
            let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            found.on_report(now, number(running), number(waiting));
            self.enforce(now);
        }
    }

    /// Drops the ranks that are not among these and have no outstanding requests.
    pub fn keep_ranks(&mut self, ranks: &[usize]) {
        self.load.keep_ranks(ranks);
    }

    /// Lets time pass: expires reports made before `expire_before`, and ends the rounds of a limit that is found.
    /// To be called a few times a second. Returns `true` if any report was valid until now.
    pub fn tick(&mut self, now: Duration, expire_before: Duration, is_awaited: bool) -> bool {
        if let Some(found) = &mut self.found {
            found.on_waiting(now, is_awaited);
            found.tick(now);
            self.enforce(now);
        }
        self.load.expire(expire_before)
    }

    fn start(&mut self, charge: ChargeTicket, now: Duration) -> UpstreamTicket {
        let started = self.found.as_mut().map(|found| found.on_start(now));
        self.enforce(now);
        UpstreamTicket { charge, started, is_awaited: false }
    }

    /// Holds the load to the limit that is found. While the upstream is left alone after an outage, one probe at a
    /// time is let through, when it is due.
    fn enforce(&mut self, now: Duration) {
        if let Some(found) = &self.found {
            let is_left_alone = found.is_open() && found.in_flight() == 0 && !found.allows(now);
            match found.is_reported() {
                true => self.load.set_limit_of_all_senders(found.limit()),
                false => {
                    self.load.set_limit(Some(if is_left_alone { 0 } else { found.limit_at(now) }))
                }
            }
        }
    }
}

// === impl UpstreamTicket ===

impl UpstreamTicket {
    /// Returns the rank that was charged.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.charge.rank()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::thresholds::Threshold;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn auto() -> UpstreamAccount {
        UpstreamAccount::new(OnSilence::Free, UpstreamLimit::Auto(LimitConfig::default()))
    }

    fn fill(account: &mut UpstreamAccount, now: Duration) -> Vec<UpstreamTicket> {
        let more = || account.try_charge(Charge::LEAST, &BusyThresholds::OFF, now).ok();
        std::iter::from_fn(more).collect()
    }

    #[test]
    fn a_limit_that_is_found_is_exact_and_a_fixed_one_stays() {
        let mut account = auto();
        let start = account.load().limit().expect("auto has a limit") as usize;
        assert_eq!(fill(&mut account, ms(0)).len(), start);
        let full = account.try_charge(Charge::LEAST, &BusyThresholds::OFF, ms(0));
        assert_eq!(full.err(), Some(Standing::Busy(Threshold::ConcurrencyLimit)));
        let mut fixed = UpstreamAccount::new(OnSilence::Free, UpstreamLimit::Fixed(3));
        assert_eq!((fill(&mut fixed, ms(0)).len(), fixed.found_limit()), (3, None));
        let mut off = UpstreamAccount::new(OnSilence::Free, UpstreamLimit::Off);
        assert!(
            (0..1000)
                .all(|_| { off.try_charge(Charge::LEAST, &BusyThresholds::OFF, ms(0)).is_ok() })
        );
    }

    #[test]
    fn a_server_that_reports_waiting_requests_is_full_in_one_report() {
        let mut account = auto();
        let report = LoadReport { running: Some(12), waiting: Some(3), ..LoadReport::default() };
        account.record_report(0, report, ms(10), ms(10));
        assert_eq!(account.load().limit(), Some(12));
        assert!(fill(&mut account, ms(11)).is_empty(), "other senders fill it");
        assert_eq!(account.found_limit().map(|found| found.last_move.label()), Some("reported"));
    }

    #[test]
    fn an_upstream_that_is_back_is_used_at_once() {
        let mut account = auto();
        let report = LoadReport { running: Some(12), waiting: Some(3), ..LoadReport::default() };
        account.record_report(0, report, ms(10), ms(10));
        let idle = LoadReport { running: Some(0), waiting: Some(0), ..LoadReport::default() };
        account.record_report(0, idle, ms(200), ms(200));
        let streams = fill(&mut account, ms(300));
        assert_eq!(streams.len(), 12);
        let (cut, stuck) = streams.into_iter().enumerate().partition::<Vec<_>, _>(|(n, _)| *n < 11);
        for (_, ticket) in cut {
            account.release(ticket, UpstreamOutcome::ConnectFailed, true, ms(400));
        }
        assert!(account.found_limit().is_some_and(|found| found.open), "all its streams broke");
        assert!(account.recover(ms(500)));
        assert!(!account.recover(ms(500)), "once");
        let found = account.found_limit().expect("auto");
        assert_eq!((found.open, found.limit), (false, 6), "half of what it was");
        assert_eq!(fill(&mut account, ms(500)).len(), 5, "one of the old ones is still there");
        for (_, ticket) in stuck {
            account.release(ticket, UpstreamOutcome::ConnectFailed, true, ms(600));
        }
        let found = account.found_limit().expect("auto");
        assert_eq!((found.open, found.in_flight), (false, 5), "its end does not count");
    }

    #[test]
    fn an_upstream_that_does_not_respond_is_left_alone_and_probed() {
        let mut account = auto();
        let mut now = ms(0);
        // Every request times out.
        for _ in 0..200 {
            now += ms(100);
            for ticket in fill(&mut account, now) {
                account.release(ticket, UpstreamOutcome::TimedOut, true, now + ms(50));
            }
            account.tick(now + ms(60), Duration::ZERO, true);
        }
        let found = account.found_limit().expect("auto");
        assert!(found.open, "{found:?}");
        // Within 20 s more, few probes; the first that succeeds ends it.
        let mut probes = 0;
        for _ in 0..200 {
            now += ms(100);
            account.tick(now, Duration::ZERO, true);
            for ticket in fill(&mut account, now) {
                probes += 1;
                account.release(ticket, UpstreamOutcome::TimedOut, true, now + ms(50));
            }
        }
        assert!((1..=40).contains(&probes), "{probes}");
        while account.found_limit().is_some_and(|found| found.open) {
            now += ms(100);
            account.tick(now, Duration::ZERO, true);
            for ticket in fill(&mut account, now) {
                account.release(ticket, UpstreamOutcome::Success, true, now + ms(50));
            }
            assert!(now < ms(3_600_000), "it never closes");
        }
    }
}
