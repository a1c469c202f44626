//! The queue of a pool of upstreams: served by priority, fair between flows, bounded.
//!
//! [`FairQueue`] orders the requests that wait, [`WaitPredictor`] predicts how long one would wait, and
//! [`PoolQueue`] decides by it at the door whether a request may wait. Uses `admission` for priorities and
//! `outbox` for the states of a fill. Must not know upstreams, transports or clocks.
//!
//! Order: a strict band for each priority; within a band, flows (a client, a tenant) by deficit round robin in
//! cost and weight; within a flow, first in, first out.
//! [`MessagePriority::Critical`](crate::admission::MessagePriority) does not queue: it shares the band of High if
//! a caller queues it all the same.
//!
//! At the bound a request replaces a less urgent one, or one of its own priority from the flow with the longest
//! backlog. A request is never displaced for a less urgent one, and never for one of a flow that has as much.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::admission::MessagePriority::{High, Low};
//! use tidegate_core::queue::{Arrival, FairQueue, Next, Offer, QueueBounds};
//!
//! let now = Duration::ZERO;
//! let mut queue = FairQueue::new(QueueBounds { count: 2, ..QueueBounds::default() });
//! queue.push(Arrival::new(Low, "batch"), now).expect("there is room");
//! queue.push(Arrival::new(High, "chat"), now).expect("there is room");
//! let pushed = queue.push(Arrival::new(High, "code"), now).expect("Low gives way");
//! assert_eq!(pushed.displaced, ["batch"]);
//!
//! // The caller offers each candidate a slot; here the first one takes it.
//! let next = queue.next(now, |_| Offer::Taken("slot 1"));
//! assert!(matches!(next, Some(Next::Served { item: "chat", slot: "slot 1", .. })));
//! ```

mod band;
mod bounds;
mod entry;
mod fair_queue;
mod pool_queue;
mod wait_predictor;

pub use bounds::QueueBounds;
pub use entry::{Arrival, FlowId, QueueKey};
pub use fair_queue::{FairQueue, Full, Next, Offer, Pushed};
pub use pool_queue::{NotQueued, NotQueuedReason, PoolQueue, PoolQueueConfig, PoolQueueTotals};
pub use wait_predictor::{WaitPredictor, WaitTarget};
