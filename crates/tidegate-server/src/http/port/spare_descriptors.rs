use super::connections::{Connections, Listed};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Descriptors that a port holds back: for two health checks at a time, and two connections that say nothing.
const SPARE_MAX: usize = 4;

/// Open descriptors that are given up one by one when the process has no other left, each for one connection.
///
/// The limit of a process counts everything, from sockets of clients to files of stores: whatever uses it up, a
/// port can still accept the connection of a health check. Spare descriptors and the connections that have one are
/// together at most four, so that a port does not use up those of another.
#[derive(Debug)]
pub struct SpareDescriptors {
    held: Vec<File>,
    /// The connections that have one of the last descriptors.
    last: Arc<Connections>,
    /// True from a failed accept until the process has descriptors again.
    exhausted: bool,
}

// === impl SpareDescriptors ===

impl SpareDescriptors {
    /// Spare descriptors of a port, as many as can be had.
    pub fn new() -> Self {
        let mut spare = Self { held: Vec::new(), last: Arc::default(), exhausted: false };
        spare.refill();
        spare
    }

    /// Takes back what was given up and is no longer used, as far as the process has descriptors again.
    pub fn refill(&mut self) {
        while self.are_missing()
            && let Ok(file) = open()
        {
            self.held.push(file);
        }
    }

    /// Lists the connection that was just accepted if it has one of the last descriptors. One that is free beside
    /// those of this port may be the spare one of another, and does not end the outage.
    pub fn list_if_last(&mut self, now: Instant) -> Option<Listed> {
        if !self.exhausted {
            return None;
        }
        let free: Vec<_> = (0..SPARE_MAX).map_while(|_| open().ok()).collect();
        self.exhausted = free.len() < SPARE_MAX;
        drop(free);
        if !self.exhausted {
            self.refill();
            return None;
        }
        let listed = self.last.list(SPARE_MAX, now);
        self.held.truncate(SPARE_MAX - self.last.count().min(SPARE_MAX));
        self.refill();
        Some(listed)
    }

    /// Gives one up for the next accept. If none is left, the connection that has had one without a request for
    /// longest has to make room, and false is returned.
    pub fn release(&mut self) -> bool {
        self.exhausted = true;
        let released = self.held.pop().is_some();
        // While some are missing, a connection that has ended is about to free one.
        if !released && !self.are_missing() {
            self.last.make_room();
        }
        released
    }

    fn are_missing(&self) -> bool {
        self.held.len() + self.last.count() < SPARE_MAX
    }

    /// Returns true if an accept failed because the process or the machine has no descriptors left.
    pub fn are_needed_for(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
    }
}

fn open() -> io::Result<File> {
    File::open("/dev/null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn spare_descriptors_are_given_up_for_connections_and_taken_back_after_them() {
        let mut spare = SpareDescriptors::new();
        let mut connections = Vec::new();
        for number in 0..SPARE_MAX {
            assert!(spare.release());
            connections.push(spare.last.list(SPARE_MAX, Instant::now()));
            spare.refill();
            assert_eq!(spare.held.len(), SPARE_MAX - 1 - number, "the connections have the rest");
        }
        assert!(!spare.release() && !spare.release());
        assert_eq!(spare.last.count(), SPARE_MAX - 1, "one makes room, and no other before it has");
        connections[0].connection().evicted().await;
        drop(connections);
        assert!(spare.list_if_last(Instant::now()).is_none(), "this process has descriptors");
        assert_eq!(spare.held.len(), SPARE_MAX);
    }

    #[test]
    fn they_are_needed_when_descriptors_are_exhausted() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        assert!(SpareDescriptors::are_needed_for(&error));
        assert!(!SpareDescriptors::are_needed_for(&io::ErrorKind::ConnectionAborted.into()));
    }
}
