use std::time::Duration;
use tidegate_core::admission::MessagePriority;

/// Admission over a whole run, by priority: what refused clients were told, and how they fared when they returned.
#[derive(Clone, Debug, Default)]
pub struct AdmissionSummary {
    by_priority: [PriorityAdmission; 4],
}

/// Admission of one priority over a whole run.
#[derive(Clone, Debug, Default)]
pub struct PriorityAdmission {
    /// The most requests in flight at one time.
    pub in_flight_max: u32,
    /// Clients that have returned at least once.
    pub returned: u64,
    /// Clients of these that were admitted at their first return.
    pub admitted_at_first_return: u64,
    /// Clients that still wait when the load ends: they were told to return after that.
    pub waiting_at_end: u64,
    /// Clients that do not return any more, after a refusal or a failure.
    pub gave_up: u64,
    /// Retry advice for the priority's own limit when the load ends: the wait of the next refused client.
    pub advice_at_end: Duration,
    /// Refused attempts by their advised wait, in milliseconds. Bounded by the longest wait that is advised.
    refused_by_wait_ms: Vec<u64>,
}

// === impl AdmissionSummary ===

impl AdmissionSummary {
    /// Returns the admission of this priority.
    #[must_use]
    pub fn of(&self, priority: MessagePriority) -> &PriorityAdmission {
        &self.by_priority[priority.index()]
    }

    pub(in crate::gateway) fn of_mut(
        &mut self,
        priority: MessagePriority,
    ) -> &mut PriorityAdmission {
        &mut self.by_priority[priority.index()]
    }
}

// === impl PriorityAdmission ===

impl PriorityAdmission {
    /// Returns the share of returning clients that were admitted at their first return; 1 without any.
    #[must_use]
    pub fn first_return_share(&self) -> f64 {
        match self.returned {
            0 => 1.0,
            returned => self.admitted_at_first_return as f64 / returned as f64,
        }
    }

    /// Returns the number of attempts that were refused with retry advice. A client that is refused twice counts
    /// twice.
    #[must_use]
    pub fn refused_attempts(&self) -> u64 {
        self.refused_by_wait_ms.iter().sum()
    }

    /// Returns the shortest wait that `percent` of the advised waits do not exceed, in whole milliseconds; `None`
    /// if no wait was advised.
    #[must_use]
    pub fn advised_wait(&self, percent: u64) -> Option<Duration> {
        let rank = (self.refused_attempts() * percent).div_ceil(100).max(1);
        let mut counted = 0;
        let wait_ms = self.refused_by_wait_ms.iter().position(|count| {
            counted += count;
            counted >= rank
        })?;
        Some(Duration::from_millis(wait_ms as u64))
    }

    pub(in crate::gateway) fn record_attempt(&mut self, returns: u32) {
        self.returned += u64::from(returns == 1);
    }

    pub(in crate::gateway) fn record_admission(&mut self, returns: u32, in_flight: u32) {
        self.admitted_at_first_return += u64::from(returns == 1);
        self.in_flight_max = self.in_flight_max.max(in_flight);
    }

    /// Records a client that is not served; it would return if the load went on, or has given up.
    pub(in crate::gateway) fn record_last_attempt(&mut self, would_return: bool) {
        self.waiting_at_end += u64::from(would_return);
        self.gave_up += u64::from(!would_return);
    }

    pub(in crate::gateway) fn record_advice(&mut self, wait: Duration) {
        let wait_ms = wait.as_millis() as usize;
        if self.refused_by_wait_ms.len() <= wait_ms {
            self.refused_by_wait_ms.resize(wait_ms + 1, 0);
        }
        self.refused_by_wait_ms[wait_ms] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_waits_that_were_given() {
        let mut low = PriorityAdmission::default();
        assert_eq!(low.advised_wait(50), None);
        (1..=100).for_each(|ms| low.record_advice(Duration::from_millis(ms)));
        let waits_ms = [0, 50, 99, 100].map(|percent| low.advised_wait(percent));
        assert_eq!(waits_ms, [1, 50, 99, 100].map(|ms| Some(Duration::from_millis(ms))));
    }
}
