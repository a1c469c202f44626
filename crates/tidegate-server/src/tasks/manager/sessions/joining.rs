use crate::tasks::session::SessionError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

/// Most connections that have not joined. They are strangers: few, and only for a short time.
pub(super) const JOINING_MAX: usize = 256;
/// Longest time from the accept of a connection to its join, with its lane and its handshake.
pub(super) const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The same while all places are taken: connections that say nothing must not keep workers out.
const JOIN_TIMEOUT_CROWDED: Duration = Duration::from_secs(1);

/// Places of connections that have not joined.
pub(super) struct JoiningPlaces {
    places: Arc<Semaphore>,
    /// Rises when a connection has to wait for a place.
    crowded: watch::Sender<u64>,
}

/// A free place, for the next connection.
pub(super) struct Place<'a> {
    places: &'a JoiningPlaces,
    permit: OwnedSemaphorePermit,
}

/// Place of a connection that has not joined, and its time.
pub(super) struct Joining {
    accepted: Instant,
    crowded: watch::Receiver<u64>,
    _permit: OwnedSemaphorePermit,
}

// === impl JoiningPlaces ===

impl Default for JoiningPlaces {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(JOINING_MAX));
        Self { places, crowded: watch::Sender::new(0) }
    }
}

impl JoiningPlaces {
    /// Waits for a free place. Without one, those that have had their time soon give theirs up.
    pub(super) async fn free(&self) -> Option<Place<'_>> {
        let permit = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.crowded.send_modify(|times| *times += 1);
                // Fails never: the semaphore is in here, and nobody closes it.
                Arc::clone(&self.places).acquire_owned().await.ok()?
            }
        };
        Some(Place { places: self, permit })
    }
}

// === impl Place ===

impl Place<'_> {
    /// A connection was accepted: its time begins.
    pub(super) fn taken(self) -> Joining {
        let crowded = self.places.crowded.subscribe();
        Joining { accepted: Instant::now(), crowded, _permit: self.permit }
    }
}

// === impl Joining ===

impl Joining {
    /// Awaits a part of the join.
    ///
    /// # Errors
    ///
    /// Of the part, and when the time to join is over.
    pub(super) async fn in_time<T>(
        &mut self,
        part: impl Future<Output = Result<T, SessionError>>,
    ) -> Result<T, SessionError> {
        tokio::select! {
            biased;
            done = part => done,
            () = self.over() => Err(SessionError::Timeout(self.accepted.elapsed())),
        }
    }

    async fn over(&mut self) {
        tokio::select! {
            () = sleep_until(self.accepted + JOIN_TIMEOUT) => {}
            () = async {
                // Fails while the port ends, as everything then.
                let _ = self.crowded.changed().await;
                // For the next part: it was crowded during this one.
                self.crowded.mark_changed();
                sleep_until(self.accepted + JOIN_TIMEOUT_CROWDED).await;
            } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    /// Time after which a connection gave up.
    async fn given_up(mut joining: Joining) -> Duration {
        let began = Instant::now();
        joining.in_time(pending::<Result<(), _>>()).await.unwrap_err();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_join_has_one_deadline_for_all_its_parts() {
        let places = JoiningPlaces::default();
        let mut joining = places.free().await.unwrap().taken();
        let part = async {
            sleep_until(Instant::now() + Duration::from_secs(4)).await;
            Ok(())
        };
        joining.in_time(part).await.unwrap();
        assert_eq!(given_up(joining).await, Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_that_says_nothing_makes_way() {
        let places = JoiningPlaces::default();
        let began = Instant::now();
        for _ in 0..JOINING_MAX {
            let joining = places.free().await.unwrap().taken();
            tokio::spawn(given_up(joining));
        }
        let next = places.free().await.unwrap();
        assert_eq!(began.elapsed(), JOIN_TIMEOUT_CROWDED, "not {JOIN_TIMEOUT:?}");
        assert_eq!(given_up(next.taken()).await, JOIN_TIMEOUT, "one alone has its time");
    }
}
