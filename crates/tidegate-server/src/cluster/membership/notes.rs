use super::member_id::MemberId;
use foca::{BroadcastHandler, Invalidates};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most nodes of which something is noted.
const NODES_MAX: usize = 10_000;

/// Facts that a node tells of itself, and that change rarely.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Version of its program.
    pub version: String,
    /// URL of its port for clients, if it has one.
    pub clients: Option<String>,
    /// The node was shut down.
    pub left: bool,
}

/// Drain of a node, as its manager has set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainNote {
    /// The node.
    pub node: String,
    /// Nothing new is dispatched to it.
    pub draining: bool,
    /// Time of the change in milliseconds of Unix time: a later one wins.
    pub at_unix_ms: u64,
}

/// A broadcast: the newest of its kind about a node wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Facts of a node in a generation.
    Facts { node: String, generation: u64, facts: Facts },
    /// Drain of a node.
    Drain(DrainNote),
}

/// Notes about the nodes of a cell.
#[derive(Debug, Default)]
pub struct Notes {
    pub facts: BTreeMap<String, (u64, Facts)>,
    pub drains: BTreeMap<String, DrainNote>,
}

/// Notes that the gossip and the views share.
#[derive(Clone, Debug, Default)]
pub struct SharedNotes(Arc<Mutex<Notes>>);

/// Subject of a broadcast: a newer one of the same subject replaces it.
#[derive(Debug, PartialEq, Eq)]
pub struct NoteKey {
    node: String,
    is_drain: bool,
}

/// A broadcast that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("malformed broadcast: {0}")]
pub struct MalformedNote(String);

// === impl Notes ===

impl Notes {
    /// Takes a note in. False when it is not news, or there are too many nodes.
    pub fn take(&mut self, note: Note) -> bool {
        match note {
            Note::Facts { node, generation, facts } => {
                let is_full = self.facts.len() >= NODES_MAX && !self.facts.contains_key(&node);
                let is_news = self.facts.get(&node).is_none_or(|(known, old)| {
                    generation > *known || (generation == *known && facts.left && !old.left)
                });
                if is_news && !is_full {
                    self.facts.insert(node, (generation, facts));
                }
                is_news && !is_full
            }
            Note::Drain(drain) => {
                let is_full =
                    self.drains.len() >= NODES_MAX && !self.drains.contains_key(&drain.node);
                let known = self.drains.get(&drain.node);
                let is_news = known.is_none_or(|known| drain.at_unix_ms > known.at_unix_ms);
                if is_news && !is_full {
                    self.drains.insert(drain.node.clone(), drain);
                }
                is_news && !is_full
            }
        }
    }
}

// === impl SharedNotes ===

impl SharedNotes {
    pub fn lock(&self) -> MutexGuard<'_, Notes> {
        // No holder panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BroadcastHandler<MemberId> for SharedNotes {
    type Key = NoteKey;
    type Error = MalformedNote;

    fn receive_item(
        &mut self,
        data: &[u8],
        sender: Option<&MemberId>,
    ) -> Result<Option<NoteKey>, MalformedNote> {
        let note: Note = serde_json::from_slice(data).map_err(|e| MalformedNote(e.to_string()))?;
        let key = NoteKey::of(&note);
        let is_news = self.lock().take(note);
        // What this node adds is sent again to members that were not there before.
        Ok((is_news || sender.is_none()).then_some(key))
    }
}

// === impl NoteKey ===

impl NoteKey {
    fn of(note: &Note) -> Self {
        match note {
            Note::Facts { node, .. } => Self { node: node.clone(), is_drain: false },
            Note::Drain(drain) => Self { node: drain.node.clone(), is_drain: true },
        }
    }
}

impl Invalidates for NoteKey {
    fn invalidates(&self, other: &Self) -> bool {
        self == other
    }
}
