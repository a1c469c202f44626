use std::time::Duration;
use tokio::time::Instant;

/// Unbroken run of this manager's heartbeats, which tells when those of other managers can be believed.
///
/// During an outage of the store nobody can write a heartbeat, and those of managers that live run out like
/// those of managers that are gone. The first manager that writes one again must not adopt what the others
/// still follow. Each writes one in every third of a lease, so that after a whole lease without a failure those
/// that live have done so. A manager that has just started knows nothing of the time before.
#[derive(Debug, Default)]
pub(super) struct UnbrokenBeats {
    /// First and last heartbeat of the run.
    run: Option<(Instant, Instant)>,
}

// === impl UnbrokenBeats ===

impl UnbrokenBeats {
    /// Takes in a heartbeat that was written at this time. True if the run has lasted for a lease.
    ///
    /// A gap that is longer than a lease ends a run, as a failure does: the store may have been silent in it.
    pub(super) fn written(&mut self, now: Instant, lease: Duration) -> bool {
        let unbroken = self.run.filter(|(_, last)| now.saturating_duration_since(*last) <= lease);
        let since = unbroken.map_or(now, |(since, _)| since);
        self.run = Some((since, now));
        now.saturating_duration_since(since) >= lease
    }

    /// Takes in a heartbeat that was not written.
    pub(super) fn failed(&mut self) {
        self.run = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    /// Writes heartbeats at these seconds, and returns at which of them those of others can be believed.
    fn believed(beats: &mut UnbrokenBeats, start: Instant, seconds: &[u64]) -> Vec<u64> {
        let written = |second: &&u64| beats.written(start + Duration::from_secs(**second), LEASE);
        seconds.iter().filter(written).copied().collect()
    }

    #[test]
    fn others_are_believed_gone_after_a_lease_of_heartbeats() {
        let (mut beats, start) = (UnbrokenBeats::default(), Instant::now());
        assert_eq!(believed(&mut beats, start, &[0, 5, 10, 15, 20]), [15, 20]);
    }

    #[test]
    fn a_failure_begins_the_wait_anew() {
        let (mut beats, start) = (UnbrokenBeats::default(), Instant::now());
        assert_eq!(believed(&mut beats, start, &[0, 5, 10, 15]), [15]);
        beats.failed();
        assert_eq!(believed(&mut beats, start, &[20, 25, 30, 35]), [35]);
    }

    #[test]
    fn a_silent_store_begins_the_wait_anew() {
        let (mut beats, start) = (UnbrokenBeats::default(), Instant::now());
        assert_eq!(believed(&mut beats, start, &[0, 15, 31, 36, 41, 46]), [15, 46]);
    }
}
