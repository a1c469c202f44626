/// Limit from the reports of an inference server: one that has requests waiting is full, and what it runs then
/// is its capacity.
///
/// A server counts at the end of a step. What has arrived during the step waits in that count, also beside slots
/// that requests of the same step have left, and what is still being tokenized is in no count. So a report is
/// compared with what the server was seen to run before, and a raise with the report that shows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    limit: Option<u32>,
    expires_s: f64,
    /// Capacity by the last reports of a full server; `None` if there were none.
    capacity: Option<u32>,
    /// The limit stays at the capacity until then.
    hold_until_s: f64,
    /// Size of the last step above the capacity; 0 while none is tried.
    step: u32,
    peak: Peak,
    /// Reports in a row with waiting requests, and the most that ran in one of them.
    queued_reports: u32,
    queued_running: u32,
    /// Reports in a row that show fewer running requests than the limit lets through.
    unseen_reports: u32,
}

/// Most requests that a server was seen to run, over the last one to two spans.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    began_s: f64,
    now: u32,
    before: u32,
}

/// Validity of a report: 40 intervals of the usual 250 ms.
const VALID_S: f64 = 10.0;

/// Hold of a limit at its capacity before one request more is tried: 8 intervals of reports. A try that fails
/// lasts one interval, so that in at most a ninth of the time one request waits at the server instead of in the
/// queue. A server that was given more capacity is used in full some intervals after the hold.
const HOLD_S: f64 = 2.0;

/// Span of the peak: 20 intervals, so that random gaps of a full batch do not hide its size.
const PEAK_SPAN_S: f64 = 5.0;

/// Reports in a row with waiting requests that prove a capacity far below what ran before. Single steps end with
/// many free slots when a batch ends as a whole.
const SMALLER_REPORTS: u32 = 6;

/// Share of the peak that is far below it. What is nearer is found when the peak is forgotten: the gaps of single
/// steps look like it.
const SMALLER: f64 = 0.75;

/// Reports that do not show a raise before the next raise is made all the same: requests may be so short that
/// most are on their way.
const UNSEEN_REPORTS: u32 = 4;

/// Share of the limit that a report has to show as running before a limit without a known capacity is raised.
const SEEN: f64 = 0.75;

// === impl Reported ===

impl Reported {
    pub(super) const fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Takes a report. `busy_at`: the limit in force, if it is binding now. Returns `true` if the limit changed.
    pub(super) fn on_report(
        &mut self,
        now_s: f64,
        running: u32,
        waiting: u32,
        gateways: u32,
        busy_at: Option<u32>,
    ) -> bool {
        let was = self.limit;
        let share = |count: u32| (count / gateways.max(1)).max(1);
        let peak = self.peak.observe(now_s, running);
        if waiting > 0 && running > 0 {
            self.queued_reports += 1;
            self.queued_running = self.queued_running.max(running);
            self.unseen_reports = 0;
            if running.saturating_add(waiting) > peak {
                self.on_full(now_s, share(peak));
            } else if self.queued_reports >= SMALLER_REPORTS
                && f64::from(self.queued_running) <= SMALLER * f64::from(peak)
            {
                let smaller = self.queued_running;
                self.peak = Peak { began_s: now_s, now: smaller, before: 0 };
                self.on_full(now_s, share(smaller));
            }
        } else if waiting == 0 {
            (self.queued_reports, self.queued_running) = (0, 0);
            if let Some(limit) = busy_at {
                self.on_room(now_s, limit, share(running));
            }
        }
        // One that runs nothing while requests wait is at a standstill: that says nothing about its size.
        self.expires_s = now_s + VALID_S;
        self.limit != was
    }

    /// Requests wait at the server, and it runs as many as it can.
    fn on_full(&mut self, now_s: f64, running: u32) {
        (self.queued_reports, self.queued_running) = (0, 0);
        self.step = 0;
        self.hold_until_s = now_s + HOLD_S;
        // Fewer than before may be larger requests: the next reports tell.
        self.capacity = Some(match self.capacity {
            Some(capacity) if capacity > running => running + (capacity - running) / 2,
            _ => running,
        });
        self.limit = Some(running);
    }

    /// Nothing waits at the server and the limit binds: it has room.
    fn on_room(&mut self, now_s: f64, limit: u32, running: u32) {
        if self.capacity.is_some() && running > limit {
            // It runs more than it could: its waiting requests had come during a step. The climb goes on.
            self.capacity = None;
            self.limit = Some(running);
            return;
        }
        let seen_min = match self.capacity {
            None => SEEN * f64::from(limit),
            Some(_) => f64::from(limit),
        };
        let is_seen = f64::from(running) >= seen_min;
        self.unseen_reports = if is_seen { 0 } else { self.unseen_reports + 1 };
        let may_raise = is_seen || self.unseen_reports.is_multiple_of(UNSEEN_REPORTS);
        let more = match self.capacity {
            // Half of the way back to what it could once.
            Some(capacity) if limit < capacity => (capacity - limit).div_ceil(2),
            _ if !may_raise => 0,
            // It was never full and may be many times as large. Half as much again: what is too much waits there.
            None => (limit / 2).max(1),
            Some(_) if now_s < self.hold_until_s => 0,
            // One, and twice as many with each further report without waiting requests: a server that grew is
            // found out soon, and a try at one that did not costs a single request.
            Some(_) => {
                self.capacity = Some(limit);
                self.step = self.step.saturating_mul(2).max(1);
                self.step
            }
        };
        self.limit = Some(limit.saturating_add(more));
    }

    /// Forgets a report that is too old; returns its limit.
    pub(super) fn expire(&mut self, now_s: f64) -> Option<u32> {
        if now_s < self.expires_s { None } else { self.limit.take() }
    }
}

// === impl Peak ===

impl Peak {
    /// Takes the running requests of a report; returns the peak.
    fn observe(&mut self, now_s: f64, running: u32) -> u32 {
        if now_s - self.began_s >= PEAK_SPAN_S {
            *self = Self { began_s: now_s, now: 0, before: self.now };
        }
        self.now = self.now.max(running);
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports every 250 ms of a server that runs as many as this of what the limit lets through. Returns how many
    /// waited there in all, by report.
    fn run(reported: &mut Reported, from_s: f64, reports: u32, slots: u32) -> u32 {
        let mut late = 0;
        for report in 0..reports {
            let there = reported.limit().unwrap_or(4);
            let (running, waiting) = (there.min(slots), there.saturating_sub(slots));
            late += waiting;
            let now_s = from_s + 0.25 * f64::from(report);
            reported.on_report(now_s, running, waiting, 1, Some(there));
        }
        late
    }

    #[test]
    fn a_capacity_is_found_within_some_reports_and_kept_with_few_tries() {
        for (slots, reports_max) in [(8, 4), (256, 14)] {
            let mut reported = Reported::default();
            run(&mut reported, 0.0, reports_max, slots);
            assert_eq!(reported.limit(), Some(slots));
            // 60 s, and one request in each ninth report.
            let late = run(&mut reported, 10.0, 240, slots);
            assert!((20..=27).contains(&late), "{slots}: {late}");
        }
    }

    #[test]
    fn capacity_that_returns_is_used_within_the_hold_and_some_reports() {
        for (slots, few, s_max) in [(8, 4, 3.0), (8, 1, 3.0), (200, 50, 4.0)] {
            let mut reported = Reported::default();
            run(&mut reported, 0.0, 80, slots);
            run(&mut reported, 20.0, 80, few);
            assert!((few..=few + 1).contains(&reported.limit().unwrap_or(0)), "{reported:?}");
            let mut now_s = 40.0;
            while reported.limit() < Some(slots) {
                run(&mut reported, now_s, 1, slots);
                now_s += 0.25;
            }
            assert!(now_s - 40.0 <= s_max, "{few} to {slots}: {} s", now_s - 40.0);
        }
    }

    #[test]
    fn a_batch_that_ended_and_its_successors_that_wait_for_the_next_step_prove_nothing() {
        let mut reported = Reported::default();
        run(&mut reported, 0.0, 40, 40);
        assert_eq!(reported.limit(), Some(40));
        for report in 0..5 {
            reported.on_report(10.0 + 0.25 * f64::from(report), 4, 36, 1, Some(40));
            assert_eq!(reported.limit(), Some(40));
        }
        reported.on_report(11.25, 40, 0, 1, Some(40));
        assert!((40..=41).contains(&reported.limit().unwrap_or(0)), "{reported:?}");
        // Six in a row are no accident.
        for report in 0..6 {
            reported.on_report(11.5 + 0.25 * f64::from(report), 20, 20, 1, Some(40));
        }
        assert_eq!(reported.limit(), Some(20));
    }

    /// Counts of a real server: what arrives during a step waits until its end, beside slots that are free.
    #[test]
    fn a_server_that_counts_at_the_end_of_its_steps_keeps_all_its_slots() {
        let mut rng = crate::rng::Rng::new(7);
        let (mut reported, mut at_capacity, slots) = (Reported::default(), 0, 8_u32);
        for report in 0..400_u32 {
            let there = reported.limit().unwrap_or(4);
            // Each tenth has ended in the step, and their successors wait beside those that are too many.
            let ended = (0..there.min(slots)).filter(|_| rng.fraction() < 0.1).count();
            let running = there.min(slots) - ended as u32;
            reported.on_report(0.25 * f64::from(report), running, there - running, 1, Some(there));
            let limit = reported.limit().unwrap_or(0);
            assert!(limit <= slots + slots / 2, "{reported:?}");
            at_capacity += u32::from(report >= 20 && limit >= slots);
        }
        assert!(at_capacity >= 350, "{at_capacity} of 380");
    }

    #[test]
    fn a_server_at_a_standstill_gets_no_more() {
        let mut reported = Reported::default();
        run(&mut reported, 0.0, 40, 8);
        let limit = reported.limit().unwrap_or(0);
        for report in 0..100 {
            reported.on_report(10.0 + 0.25 * f64::from(report), 0, limit, 1, Some(limit));
            assert_eq!(reported.limit(), Some(limit));
        }
    }

    #[test]
    fn a_report_from_before_the_last_raise_does_not_raise_again() {
        let mut reported = Reported::default();
        // The page shows what was there two reports ago.
        let mut sent = [4_u32; 3];
        for report in 0..40_u32 {
            let there = sent[0];
            let (running, waiting) = (there.min(8), there.saturating_sub(8));
            let limit = reported.limit().unwrap_or(4);
            reported.on_report(0.25 * f64::from(report), running, waiting, 1, Some(limit));
            sent = [sent[1], sent[2], reported.limit().unwrap_or(0)];
            assert!(sent[2] <= 14, "{report}: {reported:?}");
        }
        assert!((7..=10).contains(&sent[2]), "{reported:?}");
    }

    #[test]
    fn a_server_that_changes_its_size_is_followed() {
        let mut reported = Reported::default();
        run(&mut reported, 0.0, 40, 32);
        // Larger requests: fewer of them fit.
        run(&mut reported, 20.0, 20, 6);
        assert!((6..=7).contains(&reported.limit().unwrap_or(0)), "{reported:?}");
        let late = run(&mut reported, 40.0, 160, 6);
        assert!(late <= 18, "{late}");
        run(&mut reported, 100.0, 160, 32);
        assert!(reported.limit() >= Some(32), "{reported:?}");
    }
}
