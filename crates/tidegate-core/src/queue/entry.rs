use crate::admission::MessagePriority;
use std::time::Duration;

/// The identity of a flow: the client or tenant whose requests share a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A request that asks to wait.
#[derive(Clone, Debug)]
pub struct Arrival<T> {
    /// The band that it waits in.
    pub priority: MessagePriority,
    /// The flow within the band.
    pub flow: FlowId,
    /// Turns of the flow in relation to others: a flow of weight 2 gets twice the cost of one of weight 1. At
    /// least 1.
    pub weight: u32,
    /// The estimated cost, for example in tokens. At least 1.
    pub cost: u32,
    /// Memory that it holds while it waits.
    pub bytes: u64,
    /// The time from which it may not be served any more.
    pub until: Duration,
    /// True if it had its turn and lost its upstream: it may wait again, however long that takes.
    pub had_turn: bool,
    /// The request.
    pub item: T,
}

/// The position of a waiting request, to remove it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueKey {
    pub(super) band: usize,
    pub(super) flow: FlowId,
    pub(super) sequence: u64,
}

/// A waiting request.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub cost: u64,
    pub bytes: u64,
    pub since: Duration,
    pub until: Duration,
    pub item: T,
}

// === impl Arrival ===

impl<T> Arrival<T> {
    /// Creates an arrival of the default flow, with weight and cost 1, that may wait for ever.
    pub fn new(priority: MessagePriority, item: T) -> Self {
        let flow = FlowId::default();
        let (until, had_turn) = (Duration::MAX, false);
        Self { priority, flow, weight: 1, cost: 1, bytes: 0, until, had_turn, item }
    }
}
