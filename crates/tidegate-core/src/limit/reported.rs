/// Limit from the reports of an inference server: one that has requests waiting is full, and what it runs then
/// is its capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    limit: Option<u32>,
    expires_s: f64,
    /// Capacity by the last reports with waiting requests; `None` if there were none.
    capacity: Option<u32>,
    /// The limit stays at the capacity until then.
    hold_until_s: f64,
    /// Size of the last step above the capacity; 0 while none is tried.
    step: u32,
}

/// Validity of a report: 40 intervals of the usual 250 ms.
const VALID_S: f64 = 10.0;

/// Hold of a limit at its capacity before one request more is tried: 8 intervals of reports. A try that fails
/// lasts one interval, so that in at most a ninth of the time one request waits at the server instead of in the
/// queue. A server that was given more capacity is used in full some intervals after the hold.
const HOLD_S: f64 = 2.0;

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
        if waiting > 0 && running > 0 {
            self.on_full(now_s, (running / gateways.max(1)).max(1));
        } else if let Some(limit) = busy_at {
            self.on_room(now_s, limit);
        }
        self.expires_s = now_s + VALID_S;
        self.limit != was
    }

    /// Requests wait at the server: it is full.
    fn on_full(&mut self, now_s: f64, running: u32) {
        self.step = 0;
        self.hold_until_s = now_s + HOLD_S;
        // Fewer than before may be an accident of one moment, or larger requests: the next reports tell.
        self.capacity = Some(match self.capacity {
            Some(capacity) if capacity > running => running + (capacity - running) / 2,
            _ => running,
        });
        self.limit = Some(running);
    }

    /// Nothing waits at the server and the limit binds: it has room.
    fn on_room(&mut self, now_s: f64, limit: u32) {
        let more = match self.capacity {
            // It was never full and may be many times as large. Half as much again: what is too much waits there.
            None => (limit / 2).max(1),
            // Half of the way back to what it could once.
            Some(capacity) if limit < capacity => (capacity - limit).div_ceil(2),
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
    fn one_report_of_a_moment_is_made_up_for_within_a_second() {
        let mut reported = Reported::default();
        run(&mut reported, 0.0, 40, 40);
        assert_eq!(reported.limit(), Some(40));
        reported.on_report(10.0, 4, 2, 1, Some(40));
        assert_eq!(reported.limit(), Some(4));
        run(&mut reported, 10.25, 4, 40);
        assert!(reported.limit() >= Some(20), "{reported:?}");
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
