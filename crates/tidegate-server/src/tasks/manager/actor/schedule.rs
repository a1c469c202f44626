use crate::tasks::manager::settings::ManagerSettings;
use std::time::Duration;
use tokio::time::Instant;

/// Interval of deleting ended tasks.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Periodic duty of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chore {
    /// Asks every executor for its capacity.
    Probe,
    /// Renews slot leases.
    RenewLeases,
    /// Renews the manager's heartbeat, and adopts tasks.
    Adopt,
    /// Deletes tasks that ended long ago.
    Purge,
}

/// Due times of the periodic duties.
pub(super) struct Schedule {
    chores: [(Chore, Duration, Instant); 4],
}

// === impl Schedule ===

impl Schedule {
    /// All are due at once but the heartbeat, which the start itself writes.
    pub(super) fn new(settings: &ManagerSettings, now: Instant) -> Self {
        let third = settings.lease / 3;
        Self {
            chores: [
                (Chore::Probe, settings.probe_every, now),
                (Chore::RenewLeases, third, now),
                (Chore::Adopt, third, now + third),
                (Chore::Purge, PURGE_EVERY, now),
            ],
        }
    }

    /// The duties that are due now; each is then due again after its interval.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Chore> {
        let mut due = Vec::new();
        for (chore, every, at) in &mut self.chores {
            if now >= *at {
                *at = now + *every;
                due.push(*chore);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duty_is_due_after_its_interval() {
        let settings = ManagerSettings::default();
        let start = Instant::now();
        let mut schedule = Schedule::new(&settings, start);
        assert_eq!(schedule.due(start), [Chore::Probe, Chore::RenewLeases, Chore::Purge]);
        assert_eq!(schedule.due(start), []);
        let later = start + settings.probe_every;
        assert_eq!(schedule.due(later), [Chore::Probe]);
        let third = start + settings.lease / 3;
        assert_eq!(schedule.due(third), [Chore::Probe, Chore::RenewLeases, Chore::Adopt]);
    }
}
