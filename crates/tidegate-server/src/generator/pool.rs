use super::event::{ConnectionId, Link};
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

    pub fn opening(&self) -> usize {
        self.opening
    }

    /// The most that were open at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Makes room for a connection that is to be opened, if one more is allowed.
    pub fn begin(&mut self) -> Option<ConnectionId> {
        if self.open.len() + self.opening >= self.max {
            return None;
        }
        self.opening += 1;
        self.numbers += 1;
        Some(self.numbers)
    }

    pub fn opened(&mut self, id: ConnectionId, link: Link, room: usize) {
        self.opening -= 1;
        let connection = Connection { link, worked: false, in_use: 0, room, is_listed: false };
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

    pub fn remove(&mut self, id: ConnectionId) {
        self.open.remove(&id);
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
