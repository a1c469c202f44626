//! A run that was stopped before its end.

use super::Recorder;
use super::bins::Bins;

impl Recorder {
    /// The counts until a run was stopped, as if the scenario ended there.
    #[must_use]
    pub fn cut(mut self, at_s: f64) -> Self {
        self.spans.retain(|span| span.from_s < at_s);
        if let Some(last) = self.spans.last_mut() {
            last.until_s = last.until_s.min(at_s);
        }
        self.scenario.duration_s = self.scenario.duration_s.min(at_s);
        // The recovery time of a fault that was still active is unknown.
        self.scenario.faults.retain(|fault| fault.until_s < at_s);
        self.bins.cut(at_s);
        self
    }
}

// === impl Bins ===

impl Bins {
    fn cut(&mut self, at_s: f64) {
        let whole = (at_s / self.width_s()).ceil() as usize;
        self.keep(whole);
    }
}

#[cfg(test)]
mod tests {
    use crate::measure::{Ended, How, Recorder};
    use crate::scenario::{Scenario, What};
    use std::time::Duration;

    #[test]
    fn what_did_not_come_to_pass_is_not_counted_as_idle() {
        let scenario = Scenario::read(
            "cut",
            r#"
            about = "ten a second, stopped in the second phase"
            duration_s = 100
            upstreams = { count = 1, slots = 1, queue = 0 }
            class = [{ name = "a", per_s = 10, service = { kind = "fixed", ms = 100 } }]
            phase = [{ name = "first" }, { name = "second" }, { name = "third" }]
            "#,
        )
        .unwrap();
        let mut book = Recorder::new(&scenario);
        for tenth in 0..500_u64 {
            let due = Duration::from_millis(tenth * 100);
            book.due(due, 0);
            let at = due + Duration::from_millis(50);
            book.ended(&Ended { due, at, class: 0, upstream: None, how: How::Good });
        }
        let whole = book.conclude().value(What::GoodputOfCapacity, "all", None).unwrap();
        assert!((whole - 0.5).abs() < 0.01, "{whole}");
        let cut = book.cut(50.0).conclude();
        let of = |phase| cut.value(What::GoodputOfCapacity, "all", phase);
        assert!((of(None).unwrap() - 1.0).abs() < 0.01, "{of:?}", of = of(None));
        assert!((of(Some("second")).unwrap() - 1.0).abs() < 0.01);
        assert_eq!(of(Some("third")), None);
        assert_eq!(cut.charts[0].lines[0].points.len(), 50);
    }
}
