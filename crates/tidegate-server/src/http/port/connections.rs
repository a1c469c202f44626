use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// The open connections of a port, of which the one that has waited longest makes room for a new one.
#[derive(Debug, Default)]
pub struct Connections(Mutex<Vec<Arc<OpenConnection>>>);

/// A connection of a port.
#[derive(Debug)]
pub struct OpenConnection {
    state: Mutex<State>,
    evicted: Notify,
}

/// A connection on the list of its port, until it is dropped.
#[derive(Debug)]
pub struct Listed {
    list: Arc<Connections>,
    connection: Arc<OpenConnection>,
}

/// The part of a connection's exchange that is under way, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    stage: Stage,
    since: Instant,
}

/// The stages of an exchange. A peer can stay in the first two for as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No request, or a part of a head.
    Waiting,
    /// A request whose body has not ended.
    Receiving,
    /// A whole request, or a response that is a stream.
    Answering,
}

// === impl Connections ===

impl Connections {
    /// Lists a connection that was just accepted. If there are more than `max`, one ends: the one that has waited
    /// longest for a request, else the one that has waited longest for a body.
    pub fn list(self: &Arc<Self>, max: usize, now: Instant) -> Listed {
        let connection = Arc::new(OpenConnection {
            state: Mutex::new(State { stage: Stage::Waiting, since: now }),
            evicted: Notify::new(),
        });
        let mut open = lock(&self.0);
        if open.len() >= max {
            evict_one(&mut open);
        }
        open.push(Arc::clone(&connection));
        Listed { list: Arc::clone(self), connection }
    }

    /// Ends the connection that has waited longest, as for a new one.
    pub fn make_room(&self) {
        evict_one(&mut lock(&self.0));
    }

    /// Open connections, without those that had to make room.
    pub fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

// === impl OpenConnection ===

impl OpenConnection {
    /// Records the stage that the connection has reached.
    pub fn reach(&self, stage: Stage, now: Instant) {
        *lock(&self.state) = State { stage, since: now };
    }

    /// The time since which no whole request is there; `None` while one is being answered.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = *lock(&self.state);
        (state.stage != Stage::Answering).then_some(state.since)
    }

    /// Waits until the connection has to make room.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

// === impl Listed ===

impl Listed {
    pub fn connection(&self) -> &Arc<OpenConnection> {
        &self.connection
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut open = lock(&self.list.0);
        if let Some(index) = open.iter().position(|other| Arc::ptr_eq(other, &self.connection)) {
            open.swap_remove(index);
        }
    }
}

fn evict_one(open: &mut Vec<Arc<OpenConnection>>) {
    let states = open.iter().enumerate().map(|(index, other)| (*lock(&other.state), index));
    let idle = states.filter(|(state, _)| state.stage != Stage::Answering);
    if let Some((_, index)) = idle.min_by_key(|(state, _)| (state.stage, state.since)) {
        open.swap_remove(index).evicted.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn the_longest_wait_for_a_request_makes_room_then_that_for_a_body_and_never_an_answer() {
        let (list, start) = (Arc::new(Connections::default()), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let connections: Vec<Listed> = (0..3).map(|ms| list.list(3, at(ms))).collect();
        connections[0].connection.reach(Stage::Answering, at(10));
        connections[1].connection.reach(Stage::Receiving, at(11));
        let fourth = list.list(3, at(12));
        connections[2].connection.evicted().await;
        fourth.connection.reach(Stage::Answering, at(13));
        let fifth = list.list(3, at(14));
        connections[1].connection.evicted().await;
        fifth.connection.reach(Stage::Answering, at(15));
        let sixth = list.list(3, at(16));
        assert_eq!(lock(&list.0).len(), 4, "none makes room for it");
        drop((connections, fourth, fifth, sixth));
        assert!(lock(&list.0).is_empty());
    }
}
