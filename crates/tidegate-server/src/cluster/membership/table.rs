use super::member_id::MemberId;
use super::notes::Notes;
use foca::{Member, State};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// State of a member in this node's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// Answers probes.
    Alive,
    /// A member got no answer from it. It has 2 s to contradict.
    Suspect,
    /// Did not contradict a suspicion.
    Down,
    /// Shut down on purpose.
    Left,
}

/// A member, as the API shows it.
#[derive(Clone, Debug, Serialize)]
pub struct MemberView {
    /// Name.
    pub node: String,
    /// Role.
    pub role: String,
    /// Cell.
    pub cell: String,
    /// State in the view of the node that was asked.
    pub state: MemberState,
    /// Seconds since the state began, in the view of the node that was asked.
    pub since_s: u64,
    /// Reason of a suspicion, or for being down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// UDP address.
    pub address: SocketAddr,
    /// Start of the node: greater with each one.
    pub generation: u64,
    /// Version of its program; empty while unknown.
    pub version: String,
    /// URL of its port for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<String>,
    /// Nothing new is dispatched to it.
    pub draining: bool,
    /// True for the node that was asked.
    pub is_self: bool,
}

/// Members by UDP address, as the gossip knows them.
#[derive(Debug, Default)]
pub struct MemberTable {
    members: BTreeMap<SocketAddr, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    id: MemberId,
    state: State,
    since: Instant,
    reason: Option<String>,
}

// === impl MemberTable ===

impl MemberTable {
    /// Takes in the state of all other members after a step. `reason` is why a member that has become suspect or
    /// down in this step is. Returns the members that have become suspect.
    pub fn update<'a>(
        &mut self,
        now: Instant,
        all: impl Iterator<Item = &'a Member<MemberId>>,
        reason: impl Fn(State) -> String,
    ) -> Vec<MemberId> {
        let mut suspected = Vec::new();
        let mut present = BTreeMap::new();
        for member in all {
            let (id, state) = (member.id(), member.state());
            let entry = match self.members.remove(&id.address) {
                Some(entry) if entry.state == state && entry.id.node == id.node => {
                    Entry { id: id.clone(), ..entry }
                }
                _ => {
                    let reason = (state != State::Alive).then(|| reason(state));
                    if state == State::Suspect {
                        suspected.push(id.clone());
                    }
                    Entry { id: id.clone(), state, since: now, reason }
                }
            };
            present.insert(id.address, entry);
        }
        self.members = present;
        suspected
    }

    /// Generations of the live members of a name at other addresses.
    pub fn namesakes(&self, node: &str, own: SocketAddr) -> impl Iterator<Item = &MemberId> {
        let named = self.members.values().filter(move |entry| &*entry.id.node == node);
        let live =
            named.filter(move |entry| entry.state == State::Alive && entry.id.address != own);
        live.map(|entry| &entry.id)
    }

    /// Addresses of all known members.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.members.keys().copied()
    }

    /// Addresses of the members that are down.
    pub fn down(&self) -> impl Iterator<Item = SocketAddr> {
        let down = self.members.iter().filter(|(_, entry)| entry.state == State::Down);
        down.map(|(address, _)| *address)
    }

    /// A view of each name: of several addresses, that of the liveliest and latest one.
    pub fn views(&self, now: Instant, notes: &Notes) -> Vec<MemberView> {
        let mut by_name: BTreeMap<&str, &Entry> = BTreeMap::new();
        let rank = |entry: &Entry| (entry.state != State::Down, entry.id.generation);
        for entry in self.members.values() {
            let best = by_name.entry(&entry.id.node).or_insert(entry);
            if rank(entry) > rank(best) {
                *best = entry;
            }
        }
        let view = |entry: &&Entry| {
            let since = now.saturating_duration_since(entry.since);
            member_view(&entry.id, entry.state, since, entry.reason.clone(), notes)
        };
        by_name.values().map(view).collect()
    }
}

/// The view of a member.
pub fn member_view(
    id: &MemberId,
    state: State,
    since: Duration,
    reason: Option<String>,
    notes: &Notes,
) -> MemberView {
    let facts = notes.facts.get(&*id.node);
    let has_left =
        facts.is_some_and(|(generation, facts)| facts.left && *generation >= id.generation);
    let (state, reason) = match state {
        State::Alive => (MemberState::Alive, None),
        State::Suspect => (MemberState::Suspect, reason),
        State::Down if has_left => (MemberState::Left, Some("it was shut down".to_owned())),
        State::Down => (MemberState::Down, reason),
    };
    MemberView {
        node: id.node.to_string(),
        role: id.role.name().to_owned(),
        cell: id.cell.to_string(),
        state,
        since_s: since.as_secs(),
        reason,
        address: id.address,
        generation: id.generation,
        version: facts.map(|(_, facts)| facts.version.clone()).unwrap_or_default(),
        clients: facts.and_then(|(_, facts)| facts.clients.clone()),
        draining: notes.drains.get(&*id.node).is_some_and(|drain| drain.draining),
        is_self: false,
    }
}
