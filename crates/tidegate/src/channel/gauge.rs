use super::credit::credits::Credits;
use super::credit::gate::{Gate, Reading};
use super::sync::Arc;
use super::weight::Window;
use std::fmt;

/// Resizes a channel and reads how full it is. Cheap to clone; it keeps no channel open.
///
/// ```
/// use tidegate::channel::{Single, Window, windowed};
///
/// let (sender, mut receiver) = windowed(Window::of_items(3));
/// let gauge = sender.gauge();
/// for number in 0..3 {
///     assert!(sender.try_send(Single(number)).is_ok());
/// }
///
/// // Two more than the new window are in flight: two receives repay them, and the third makes room.
/// gauge.resize(Window::of_items(1));
/// assert_eq!(gauge.snapshot().balance.items, -2);
/// assert!(receiver.try_recv().is_ok());
/// assert!(receiver.try_recv().is_ok());
/// assert_eq!(gauge.snapshot().balance.items, 0);
/// assert!(sender.try_send(Single(3)).is_err());
/// ```
#[derive(Clone)]
pub struct WindowGauge {
    gate: Arc<Gate>,
}

/// Snapshot of a channel.
///
/// `balance + queued + leased + reserved = granted`, in items and in bytes, exactly when nothing moves meanwhile.
/// While something does, a message on its way may be counted in the place it left or in the one it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSnapshot {
    /// The window.
    pub granted: Window,
    /// Credits left to send; negative while more is in flight than the window.
    pub balance: Balance,
    /// Sent and not received.
    pub queued: Load,
    /// Received under a lease that has not ended.
    pub leased: Load,
    /// Handed to senders that have not sent yet: they hold a slot, or were served and have not run since.
    pub reserved: Load,
    /// Senders that wait now.
    pub senders_waiting: usize,
    /// Total number of times that a sender had to wait.
    pub waits_total: u64,
    /// Items that were sent, ever. Never decreases, and is never less than what departed.
    pub arrived_items_total: u64,
    /// Items that were received, ever, leased or not. Never decreases.
    pub departed_items_total: u64,
    /// True if the channel accepts no more messages.
    pub closed: bool,
}

/// Items and bytes in one state of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Items, as the messages count them.
    pub items: u64,
    /// Bytes, as the messages count them.
    pub bytes: u64,
}

/// Items and bytes that may still be sent, or that are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Items, as the messages count them.
    pub items: i64,
    /// Bytes, as the messages count them.
    pub bytes: i64,
}

// === impl WindowGauge ===

impl WindowGauge {
    pub(super) fn new(gate: &Arc<Gate>) -> Self {
        Self { gate: Arc::clone(gate) }
    }

    /// Makes the window this large from now on. No message is moved, and it takes the same time at any size.
    ///
    /// Messages beyond a smaller window stay in flight; none is admitted until the excess is received. Senders
    /// for whom a larger window has room are served at once, in order.
    pub fn resize(&self, window: Window) {
        self.gate.resize(window);
    }

    /// Current state of the channel.
    #[must_use]
    pub fn snapshot(&self) -> WindowSnapshot {
        self.gate.read().into()
    }
}

impl fmt::Debug for WindowGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WindowGauge").field(&self.snapshot()).finish()
    }
}

// === impl WindowSnapshot ===

impl WindowSnapshot {
    /// All that is not free: queued, leased or reserved.
    #[must_use]
    pub fn in_flight(&self) -> Load {
        Load {
            items: self.queued.items + self.leased.items + self.reserved.items,
            bytes: self.queued.bytes + self.leased.bytes + self.reserved.bytes,
        }
    }
}

impl From<Reading> for WindowSnapshot {
    fn from(reading: Reading) -> Self {
        let Reading { granted, balance, leased, reserved, .. } = reading;
        Self {
            granted: Window { items: granted.items() as u32, bytes: granted.bytes() as u64 },
            balance: Balance { items: balance.items(), bytes: balance.bytes() },
            queued: Load::of(granted - balance - leased - reserved),
            leased: Load::of(leased),
            reserved: Load::of(reserved),
            senders_waiting: reading.waiting,
            waits_total: reading.waits,
            arrived_items_total: reading.arrived_items,
            departed_items_total: reading.departed_items,
            closed: reading.closed,
        }
    }
}

// === impl Load ===

impl Load {
    /// Parts read at different times may add up to less than zero, which counts as zero.
    pub(super) fn of(credits: Credits) -> Self {
        Self { items: credits.items().max(0) as u64, bytes: credits.bytes().max(0) as u64 }
    }
}
