//! Responses on their way to the client, and everything that is held until they have been passed on.
//! Uses reservations of upstreams, permits and counters.
//! Must not know how the request was sent.

mod body;
mod exchange;
mod guard;
pub mod tunnel;

pub use body::{GatewayBody, ProxiedBody};
pub use exchange::{Admitted, Exchange};
pub use guard::ResponseGuard;
