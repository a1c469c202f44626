use super::event::{ConnectionId, Link, Opened};
use std::collections::HashMap;

/// Open connections, and the number of those being opened.
pub(in crate::generator) struct Pool {
    open: HashMap<ConnectionId, Connection>,
    /// Connections with room, the most recently used last. Ended and full ones are removed when they are found;
    /// there are at most as many as connections, because none is opened while one is free.
    free: Vec<ConnectionId>,
    opening: usize,
    last_id: ConnectionId,
    max: usize,
    open_max: usize,
}

pub(in crate::generator) struct Connection {
    pub link: Box<dyn Link + Send>,
    /// A response has arrived.
    pub worked: bool,
    /// A request was sent on it.
    pub was_used: bool,
    in_use: usize,
    room: usize,
    is_listed: bool,
}

// === impl Pool ===

impl Pool {
    pub fn new(max: usize) -> Self {
        Self { open: HashMap::new(), free: Vec::new(), opening: 0, last_id: 0, max, open_max: 0 }
    }

    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// True if all allowed connections are open.
    pub fn is_full(&self) -> bool {
        self.open.len() >= self.max
    }

    /// True if one more may be opened.
    pub fn has_room(&self) -> bool {
        self.open.len() + self.opening < self.max
    }

    pub fn opening(&self) -> usize {
        self.opening
    }

    /// Peak of open connections.
    pub fn open_max(&self) -> usize {
        self.open_max
    }

    /// Reserves a connection to be opened, if one more is allowed.
    pub fn begin(&mut self) -> Option<ConnectionId> {
        if !self.has_room() {
            return None;
        }
        self.opening += 1;
        self.last_id += 1;
        Some(self.last_id)
    }

    pub fn opened(&mut self, opened: Opened) {
        self.opening -= 1;
        let Opened { id, link, room, .. } = opened;
        let connection =
            Connection { link, worked: false, was_used: false, in_use: 0, room, is_listed: false };
        self.open.insert(id, connection);
        self.open_max = self.open_max.max(self.open.len());
        self.list(id);
    }

    pub fn not_opened(&mut self) {
        self.opening -= 1;
    }

    /// Takes a stream of the most recently used connection with room.
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

    /// Returns a stream.
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
    use crate::generator::connection::event::Dispatch;
    use std::time::Duration;

    struct NoLink;

    impl Link for NoLink {
        fn dispatch(&self, _: Dispatch) -> bool {
            true
        }
    }

    fn pool_with(rooms: &[usize]) -> Pool {
        let mut pool = Pool::new(rooms.len());
        for room in rooms {
            let id = pool.begin().expect("one more is allowed");
            pool.opened(Opened { id, link: Box::new(NoLink), room: *room, took: Duration::ZERO });
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
    fn ended_connections_are_not_taken() {
        let mut pool = pool_with(&[1, 1]);
        pool.remove(2);
        assert_eq!((taken(&mut pool), taken(&mut pool)), (Some(1), None));
        pool.remove(1);
        pool.release(1);
        assert_eq!(taken(&mut pool), None);
    }

    #[test]
    fn a_connection_has_a_stream_limit() {
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
        assert_eq!(pool.open_max(), 2);
    }
}
