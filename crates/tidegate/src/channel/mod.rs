//! A channel whose window can change while messages are in it.
//!
//! Credits count items and bytes, and both bounds hold exactly. A resize moves no message: a window that shrinks
//! below what is in flight leaves a debt, and receives repay it. Senders that wait are served in order. `send`,
//! `recv` and their kin may be cancelled at any time: no credit and no wake-up is lost, and
//! [`send_ref`](WindowedSender::send_ref), [`send_batch`](WindowedSender::send_batch) and
//! [`reserve`](WindowedSender::reserve) lose no message either.
//!
//! Begin at [`windowed`].
//!
//! May use tokio's cooperative budget only. Must not know stages, records or a scheduler.

mod batch;
mod block;
mod credit;
mod error;
mod gauge;
mod inbox;
mod lease;
mod receiver;
mod sender;
mod sync;
mod turn;
mod weight;
mod windowed;

pub use error::{Closed, SendError, SlotError, TryRecvError, TrySendError};
pub use gauge::{Balance, Load, WindowGauge, WindowSnapshot};
pub use lease::Lease;
pub use receiver::WindowedReceiver;
pub use sender::{Slot, WindowedSender};
pub use weight::{Single, Weigh, Weight, Window};
pub use windowed::windowed;
