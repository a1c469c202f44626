use super::message::Operation;
use crate::agenda::Time;
use crate::scenario::{Fault, FaultKind};
use std::time::Duration;
use tidegate_core::capacity::ExecutorId;
use tidegate_core::rng::Rng;

/// The timeout of a reply, in addition to the long poll: the managers' default.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The duration of a long poll for the end of an execution; below the lease, which it renews.
pub const POLL_MAX: Duration = Duration::from_secs(5);

/// The network between managers and executors: messages are delayed, and some are lost.
#[derive(Debug)]
pub struct Network {
    pub hop: Time,
    faults: Vec<Fault>,
    rng: Rng,
}

// === impl Network ===

impl Network {
    pub fn new(hop: Time, faults: &[Fault], rng: Rng) -> Self {
        let ours = |fault: &&Fault| matches!(fault.kind, FaultKind::Loss | FaultKind::Delay);
        Self { hop, faults: faults.iter().filter(ours).cloned().collect(), rng }
    }

    /// Returns the arrival time of a message to or from this executor that is sent now; `None` if it is lost.
    pub fn pass(&mut self, now: Time, executor: ExecutorId) -> Option<Time> {
        let mut at = now + self.hop;
        let now_s = now as f64 / 1e9;
        let number = u16::try_from(executor.0).unwrap_or(u16::MAX);
        for fault in &self.faults {
            if !fault.is_on(now_s) || !fault.hits(number) {
                continue;
            }
            let drawn = self.rng.uniform();
            match fault.kind {
                FaultKind::Loss if drawn <= fault.share.unwrap_or(0.0) => return None,
                FaultKind::Delay => at += (fault.added_ms.unwrap_or(0.0) * drawn * 1e6) as Time,
                _ => {}
            }
        }
        Some(at)
    }

    /// Returns the time at which the caller of an operation gives up.
    pub fn deadline(now: Time, ask: Operation) -> Time {
        let held_back = if ask == Operation::Follow { POLL_MAX } else { Duration::ZERO };
        now + (held_back + ANSWER_TIMEOUT).as_nanos() as Time
    }
}
