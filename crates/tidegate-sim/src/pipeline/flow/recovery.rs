//! When all was as before: not the first good second after a fault, but the one after which all are good.

use super::FlowRecorder;
use super::slices::Slice;
use tidegate_core::window::WindowConfig;

/// Rates are compared over stretches of this many slices: a second, where slices are of 100 ms.
const SLICES_AT_ONCE: usize = 10;

/// The least that a second after recovery stores, relative to the rate before the fault, or to the offered rate
/// where that is less.
const STORED_LEAST: f64 = 0.9;

/// The state before the fault.
#[derive(Clone, Copy, Debug)]
struct Usual {
    /// Records stored in one slice.
    stored: f64,
    /// Records that wait, at most.
    waiting: f64,
}

impl FlowRecorder {
    /// Seconds from the end of the last fault until as much is stored as before the first, and no more waits;
    /// infinite when that never is. `None` without a fault, or without a time before it.
    pub(super) fn recovery_s(&self) -> Option<f64> {
        let first_s = self.scenario.faults.iter().map(|fault| fault.from_s).reduce(f64::min)?;
        let width_s = self.slices.width_s();
        let slice_at = |time_s: f64| (time_s / width_s).round() as usize;
        let (from, until) = (slice_at(self.scenario.settle_s), slice_at(first_s));
        let waiting: Vec<u64> = self.slices.waiting().map(|(_, waiting)| waiting).collect();
        let usual = self.usual(self.slices.all.get(from..until)?, waiting.get(from..until)?)?;
        let over = slice_at(self.scenario.faults_over_s());
        let after = self.slices.all.get(over..)?.chunks(SLICES_AT_ONCE);
        let after = after.zip(waiting[over..].chunks(SLICES_AT_ONCE));
        let is_like: Vec<bool> = after.map(|(all, waiting)| usual.is_like(all, waiting)).collect();
        let last_bad = is_like.iter().rposition(|is_like| !is_like);
        let normal_from = last_bad.map_or(0, |index| index + 1);
        let recovered = normal_from < is_like.len();
        let after_s = (normal_from * SLICES_AT_ONCE) as f64 * width_s;
        Some(if recovered { after_s } else { f64::INFINITY })
    }

    fn usual(&self, slices: &[Slice], waiting: &[u64]) -> Option<Usual> {
        let stored: u64 = slices.iter().map(|slice| slice.stored).sum();
        let most = waiting.iter().copied().max()? as f64;
        // What one stage is meant to hold is no backlog.
        let target_s = WindowConfig::default().target_delay.as_secs_f64();
        let meant = self.scenario.capacity_per_s()? * target_s;
        Some(Usual { stored: stored as f64 / slices.len() as f64, waiting: most.max(meant) })
    }
}

// === impl Usual ===

impl Usual {
    fn is_like(self, slices: &[Slice], waiting: &[u64]) -> bool {
        let stored: u64 = slices.iter().map(|slice| slice.stored).sum();
        let offered: u64 = slices.iter().map(|slice| slice.offered).sum();
        let expected = (self.stored * slices.len() as f64).min(offered as f64);
        let waits_no_more = waiting.last().is_some_and(|waiting| *waiting as f64 <= self.waiting);
        stored as f64 >= STORED_LEAST * expected && waits_no_more
    }
}
