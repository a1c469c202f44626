/// Limit from the reports of an inference server: one that has requests waiting is full, and what it runs then
/// is its capacity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    limit: Option<u32>,
    expires_s: f64,
    /// True if requests have waited there: only then its capacity is known.
    was_full: bool,
}

/// Validity of a report: five intervals of the usual 2 s scrape.
const VALID_S: f64 = 10.0;

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
            self.limit = Some((running / gateways.max(1)).max(1));
            self.was_full = true;
        } else if let Some(limit) = busy_at {
            // Nothing waits there and the limit binds: the server has room. An eighth beyond what was full once is
            // found again in one report; what was never full may be many times as large.
            let more = if self.was_full { limit / 8 } else { limit };
            self.limit = Some(limit.saturating_add(more.max(1)));
        }
        self.expires_s = now_s + VALID_S;
        self.limit != was
    }

    /// Forgets a report that is too old; returns its limit.
    pub(super) fn expire(&mut self, now_s: f64) -> Option<u32> {
        if now_s < self.expires_s { None } else { self.limit.take() }
    }
}
