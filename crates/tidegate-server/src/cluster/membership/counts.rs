use super::packet::Dropped;
use crate::http::Histogram;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of membership, which its thread adds to and others read.
#[derive(Default)]
pub(in crate::cluster) struct MembershipCounts {
    sent: AtomicU64,
    unsent: AtomicU64,
    accepted: AtomicU64,
    garbage: AtomicU64,
    version: AtomicU64,
    unknown_key: AtomicU64,
    forged: AtomicU64,
    replayed: AtomicU64,
    malformed: AtomicU64,
    probes_sent: AtomicU64,
    probes_answered: AtomicU64,
    suspicions: AtomicU64,
    stalls: AtomicU64,
    names_contested: AtomicU64,
    pub(in crate::cluster) round_trips: Histogram,
}

/// Packets by what became of them, probes and suspicions since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Sent.
    pub sent: u64,
    /// Not sent: the system refused, such as while a network is gone.
    pub unsent: u64,
    /// Received and taken in.
    pub accepted: u64,
    /// Dropped: no packet of membership.
    pub garbage: u64,
    /// Dropped: of another version.
    pub version: u64,
    /// Dropped: sealed with a key that is not in the keyring.
    pub unknown_key: u64,
    /// Dropped: not sealed by a holder of its key, or changed.
    pub forged: u64,
    /// Dropped: received before, or of an earlier generation.
    pub replayed: u64,
    /// Dropped: unreadable inside.
    pub malformed: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered directly.
    pub probes_answered: u64,
    /// Members that became suspect in this node's view.
    pub suspicions: u64,
    /// Stalls of this process after which its timers were armed again.
    pub stalls: u64,
    /// Other nodes that have claimed the name of this one since long after its start: 1 after the first.
    pub names_contested: u64,
}

// === impl MembershipCounts ===

impl MembershipCounts {
    pub(super) fn sent(&self, was_sent: bool) {
        let counter = if was_sent { &self.sent } else { &self.unsent };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, dropped: Dropped) {
        let counter = match dropped {
            Dropped::Garbage => &self.garbage,
            Dropped::Version => &self.version,
            Dropped::UnknownKey => &self.unknown_key,
            Dropped::Forged => &self.forged,
            Dropped::Replayed => &self.replayed,
            Dropped::Malformed => &self.malformed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn probe_sent(&self) {
        self.probes_sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn probe_answered(&self, after: Duration) {
        self.probes_answered.fetch_add(1, Ordering::Relaxed);
        self.round_trips.record(after);
    }

    pub(super) fn suspected(&self) {
        self.suspicions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_stalls(&self, stalls: u64) {
        self.stalls.store(stalls, Ordering::Relaxed);
    }

    pub(super) fn name_contested(&self) {
        self.names_contested.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::cluster) fn view(&self) -> PacketCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PacketCounts {
            sent: read(&self.sent),
            unsent: read(&self.unsent),
            accepted: read(&self.accepted),
            garbage: read(&self.garbage),
            version: read(&self.version),
            unknown_key: read(&self.unknown_key),
            forged: read(&self.forged),
            replayed: read(&self.replayed),
            malformed: read(&self.malformed),
            probes_sent: read(&self.probes_sent),
            probes_answered: read(&self.probes_answered),
            suspicions: read(&self.suspicions),
            stalls: read(&self.stalls),
            names_contested: read(&self.names_contested),
        }
    }
}
