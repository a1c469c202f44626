use super::event::{ConnectionId, Link, Opened};
use std::collections::HashMap;

/// The open connections and those that are being opened.
pub(super) struct Pool {
    open: HashMap<ConnectionId, Connection>,
    /// Connections that take a request, the most recently used last. Those that are gone or full are found when
    /// their turn comes; there are at most as many as connections, because none is opened while one is free.
    free: Vec<ConnectionId>,
    opening: usize,
    numbers: ConnectionId,
    max: usize,
    most: usize,
}

pub(super) struct Connection {
    pub link: Link,
    /// Whether an answer came on it.
    pub worked: bool,
    /// Whether a request was ever given to it.
    pub was_used: bool,
    in_use: usize,
    room: usize,
    is_listed: bool,
}

// === impl Pool ===

impl Pool {
    pub fn new(max: usize) -> Self {
        Self { open: HashMap::new(), free: Vec::new(), opening: 0, numbers: 0, max, most: 0 }
    }

    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether all connections that are allowed are open.
    pub fn is_full(&self) -> bool {
        self.open.len() >= self.max
    }

    /// Whether one more may be opened than are and are being.
    pub fn has_room(&self) -> bool {
        self.open.len() + self.opening < self.max
    }

    pub fn opening(&self) -> usize {
        self.opening
    }

    /// The most that were open at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Makes room for a connection that is to be opened, if one more is allowed.
    pub fn begin(&mut self) -> Option<ConnectionId> {
        if !self.has_room() {
            return None;
        }
        self.opening += 1;
        self.numbers += 1;
        Some(self.numbers)
    }

    pub fn opened(&mut self, opened: Opened) {
        self.opening -= 1;
        let Opened { id, link, room, .. } = opened;
        let connection =
            Connection { link, worked: false, was_used: false, in_use: 0, room, is_listed: false };
        self.open.insert(id, connection);
        self.most = self.most.max(self.open.len());
        self.list(id);
    }

    pub fn not_opened(&mut self) {
        self.opening -= 1;
    }

    /// Takes a place on the most recently used connection that has one.
    pub fn take(&mut self) -> Option<(ConnectionId, &mut Connection)> {
        let id = loop {
            let id = *self.free.last()?;
            match self.open.get_mut(&id) {
                Some(connection) if connection.in_use < connection.room => break id,
                Some(connection) => connection.is_listed = false,
                None => {}
            }
            self.free.pop();
        };
        let connection = self.open.get_mut(&id)?;
        connection.in_use += 1;
        connection.was_used = true;
        Some((id, connection))
    }

    /// Gives a place back.
    pub fn release(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.in_use = connection.in_use.saturating_sub(1);
            self.list(id);
        }
    }

    pub fn set_room(&mut self, id: ConnectionId, room: usize) {
        if let Some(connection) = self.open.get_mut(&id) {
            connection.room = room;
            self.list(id);
        }
    }

    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.open.get_mut(&id)
    }

    pub fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        self.open.remove(&id)
    }

    fn list(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open.get_mut(&id)
            && !connection.is_listed
            && connection.in_use < connection.room
        {
            connection.is_listed = true;
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::mpsc;

    fn pool_with(rooms: &[usize]) -> Pool {
        let mut pool = Pool::new(rooms.len());
        for room in rooms {
            let id = pool.begin().expect("one more is allowed");
            let link = Link::Http1(mpsc::channel(1).0);
            pool.opened(Opened { id, link, room: *room, took: Duration::ZERO });
        }
        pool
    }

    fn taken(pool: &mut Pool) -> Option<ConnectionId> {
        pool.take().map(|(id, _)| id)
    }

    #[test]
    fn the_most_recently_used_is_taken_first() {
        let mut pool = pool_with(&[1, 1, 1]);
        let all: Vec<_> = (0..4).map(|_| taken(&mut pool)).collect();
        assert_eq!(all, [Some(3), Some(2), Some(1), None]);
        pool.release(3);
        pool.release(1);
        assert_eq!(taken(&mut pool), Some(1));
        assert_eq!(taken(&mut pool), Some(3));
    }

    #[test]
    fn what_is_gone_is_not_taken() {
        let mut pool = pool_with(&[1, 1]);
        pool.remove(2);
        assert_eq!((taken(&mut pool), taken(&mut pool)), (Some(1), None));
        pool.remove(1);
        pool.release(1);
        assert_eq!(taken(&mut pool), None);
    }

    #[test]
    fn a_connection_takes_as_many_as_it_has_room_for() {
        let mut pool = pool_with(&[2]);
        assert_eq!([0; 3].map(|_| taken(&mut pool)), [Some(1), Some(1), None]);
        pool.set_room(1, 3);
        assert_eq!([0; 2].map(|_| taken(&mut pool)), [Some(1), None]);
        pool.set_room(1, 1);
        pool.release(1);
        pool.release(1);
        assert_eq!(taken(&mut pool), None);
        pool.release(1);
        assert_eq!(taken(&mut pool), Some(1));
    }

    #[test]
    fn no_more_are_opened_than_allowed() {
        let mut pool = pool_with(&[1, 1]);
        assert_eq!(pool.begin(), None);
        pool.remove(1);
        assert!(pool.begin().is_some());
        assert_eq!(pool.begin(), None);
        pool.not_opened();
        assert!(pool.begin().is_some());
        assert_eq!(pool.most(), 2);
    }
}
