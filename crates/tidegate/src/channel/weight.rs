/// Items and bytes of a window that a message occupies.
///
/// A message weighs at least one item, so that a queue of messages that weigh nothing has a bound too. Items
/// beyond [`Window::ITEMS_MAX`] count as that many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Weight {
    /// Records, or slots of bytes whose records are not known yet.
    pub items: u32,
    /// Bytes of memory.
    pub bytes: u32,
}

/// Says what it takes of a window.
///
/// A message is asked when it is sent, and may be asked again when it is received; it should say the same.
/// If it does not, a batch's credits are shared out differently among its messages, and none is lost.
pub trait Weigh {
    /// Its weight.
    fn weight(&self) -> Weight;
}

/// Capacity of a channel, in items and in bytes: both bounds hold.
///
/// Larger values count as [`ITEMS_MAX`](Self::ITEMS_MAX) and [`BYTES_MAX`](Self::BYTES_MAX).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Window {
    /// Items, as the messages count them.
    pub items: u32,
    /// Bytes, as the messages count them.
    pub bytes: u64,
}

/// Any value as a message of one item and no bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Single<T>(pub T);

// === impl Weight ===

impl Weight {
    /// Nothing.
    pub const NONE: Self = Self { items: 0, bytes: 0 };

    /// One item of so many bytes.
    #[must_use]
    pub const fn one(bytes: u32) -> Self {
        Self { items: 1, bytes }
    }
}

// === impl Window ===

impl Window {
    /// The most items a channel counts: 67,108,863, 512 times the largest window of the pipeline.
    pub const ITEMS_MAX: u32 = (1 << 26) - 1;

    /// The most bytes a channel counts: one less than 16 GiB, 32 times the budget of the pipeline.
    pub const BYTES_MAX: u64 = (1 << 34) - 1;

    /// A window of this many items, with any number of bytes.
    #[must_use]
    pub const fn of_items(items: u32) -> Self {
        Self { items, bytes: Self::BYTES_MAX }
    }
}

// === impl Single ===

impl<T> Weigh for Single<T> {
    fn weight(&self) -> Weight {
        Weight::one(0)
    }
}
