//! HTTP connections of the generator: opening, exchanges, events and the pool.
//! May use: clock, configuration, driver types, prepared requests.
//! Must not know: the schedule, the queue, the engine.

mod connector;
mod event;
mod exchange;
mod http1;
mod http2;
mod open;
mod pool;

pub(super) use connector::{Connector, authority, is_local_exhaustion};
pub(super) use event::{ConnectionId, Dispatch, Ended, Event};
pub use exchange::BODY_BYTES_MAX;
pub(super) use open::open;
pub(super) use pool::Pool;
