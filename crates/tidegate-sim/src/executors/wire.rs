use super::message::Ask;
use crate::agenda::Time;
use crate::random::SplitMix64;
use crate::scenario::{Fault, FaultKind};
use std::time::Duration;
use tidegate_core::capacity::ExecutorId;

/// Until an answer is there, beyond what was asked to be waited: as managers have it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a question for the end of an execution is held back; below the lease, which it renews.
pub(super) const POLL_MAX: Duration = Duration::from_secs(5);

/// What is between managers and executors: messages take their time, some take longer, and some never arrive.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) hop: Time,
    faults: Vec<Fault>,
    chance: SplitMix64,
}

// === impl Wire ===

impl Wire {
    pub(super) fn new(hop: Time, faults: &[Fault], chance: SplitMix64) -> Self {
        let ours = |fault: &&Fault| matches!(fault.kind, FaultKind::Loss | FaultKind::Delay);
        Self { hop, faults: faults.iter().filter(ours).cloned().collect(), chance }
    }

    /// When a message to or from this executor arrives that is sent now; `None` when it never does.
    pub(super) fn pass(&mut self, now: Time, executor: ExecutorId) -> Option<Time> {
        let mut at = now + self.hop;
        let now_s = now as f64 / 1e9;
        let number = u16::try_from(executor.0).unwrap_or(u16::MAX);
        for fault in &self.faults {
            if !fault.is_on(now_s) || !fault.hits(number) {
                continue;
            }
            let drawn = self.chance.uniform();
            match fault.kind {
                FaultKind::Loss if drawn <= fault.share.unwrap_or(0.0) => return None,
                FaultKind::Delay => at += (fault.added_ms.unwrap_or(0.0) * drawn * 1e6) as Time,
                _ => {}
            }
        }
        Some(at)
    }

    /// When whoever asks this now gives up.
    pub(super) fn deadline(now: Time, ask: Ask) -> Time {
        let held_back = if ask == Ask::Follow { POLL_MAX } else { Duration::ZERO };
        now + (held_back + ANSWER_TIMEOUT).as_nanos() as Time
    }
}
