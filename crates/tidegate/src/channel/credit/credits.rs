//! Implementation: items and bytes in one word, so that both bounds are checked, and both taken, in one atomic
//! step.
//!
//! ```text
//! 63            37 36                 2   1        0
//! | items, signed | bytes, signed      | closed | waiting |
//! ```
//!
//! A word is the sum `items << 37 + bytes << 2 + flags`: adding words adds both lanes, also when they are
//! negative, as long as each lane holds its sum. It does: a balance is between the largest window and minus
//! the largest thing in flight, and both are bounded by [`Window::ITEMS_MAX`] and [`Window::BYTES_MAX`].

use crate::channel::weight::{Weight, Window};
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

const FLAG_BITS: u32 = 2;
const ITEM_BITS: u32 = 27;
const ITEM_SHIFT: u32 = 64 - ITEM_BITS;

/// Items and bytes, signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::channel) struct Credits(i64);

/// Any number of charges added up: more than a word can count.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::channel) struct Sum {
    items: i64,
    bytes: i64,
}

/// A balance of credits with the flags that a sender checks before it takes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::channel) struct PackedBalance(pub(in crate::channel) i64);

// === impl Credits ===

impl Credits {
    pub(in crate::channel) const NONE: Self = Self(0);

    pub(in crate::channel) const fn new(items: i64, bytes: i64) -> Self {
        Self((items << ITEM_SHIFT) + (bytes << FLAG_BITS))
    }

    /// The credits that a message of this weight takes.
    pub(in crate::channel) const fn charge(weight: Weight) -> Self {
        Self::new(charged_items(weight), weight.bytes as i64)
    }

    /// Not as a charge: nothing is nothing.
    pub(in crate::channel) const fn exactly(weight: Weight) -> Self {
        Self::new(at_most(weight.items as i64, Window::ITEMS_MAX as i64), weight.bytes as i64)
    }

    pub(in crate::channel) const fn window(window: Window) -> Self {
        let bytes = if window.bytes > Window::BYTES_MAX { Window::BYTES_MAX } else { window.bytes };
        Self::new(at_most(window.items as i64, Window::ITEMS_MAX as i64), bytes as i64)
    }

    /// Of credits that an atomic holds.
    pub(in crate::channel) const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    pub(in crate::channel) const fn to_bits(self) -> i64 {
        self.0
    }

    pub(in crate::channel) const fn items(self) -> i64 {
        (self.0 - (self.bytes() << FLAG_BITS)) >> ITEM_SHIFT
    }

    pub(in crate::channel) const fn bytes(self) -> i64 {
        (self.0 << ITEM_BITS) >> (ITEM_BITS + FLAG_BITS)
    }

    /// True if `available` has enough of both.
    pub(in crate::channel) const fn fits(self, available: Self) -> bool {
        self.items() <= available.items() && self.bytes() <= available.bytes()
    }

    /// The lesser of each lane.
    pub(in crate::channel) fn min(self, other: Self) -> Self {
        Self::new(self.items().min(other.items()), self.bytes().min(other.bytes()))
    }

    /// The greater of each lane.
    pub(in crate::channel) fn max(self, other: Self) -> Self {
        Self::new(self.items().max(other.items()), self.bytes().max(other.bytes()))
    }

    /// A part of it, rounded down.
    pub(in crate::channel) const fn divided_by(self, divisor: i64) -> Self {
        Self::new(self.items() / divisor, self.bytes() / divisor)
    }

    pub(in crate::channel) const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl Add for Credits {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Credits {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Credits {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Credits {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Neg for Credits {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

const fn charged_items(weight: Weight) -> i64 {
    let items = if weight.items == 0 { 1 } else { weight.items as i64 };
    at_most(items, Window::ITEMS_MAX as i64)
}

const fn at_most(value: i64, most: i64) -> i64 {
    if value > most { most } else { value }
}

// === impl Sum ===

impl Sum {
    /// With what a message of this weight takes.
    pub(in crate::channel) fn charge(self, weight: Weight) -> Self {
        Self {
            items: self.items + charged_items(weight),
            bytes: self.bytes + i64::from(weight.bytes),
        }
    }

    pub(in crate::channel) fn plus(self, credits: Credits) -> Self {
        Self { items: self.items + credits.items(), bytes: self.bytes + credits.bytes() }
    }

    /// As credits, if there is enough of both in `room`.
    pub(in crate::channel) fn within(self, room: Credits) -> Option<Credits> {
        let fits = self.items <= room.items() && self.bytes <= room.bytes();
        fits.then(|| Credits::new(self.items, self.bytes))
    }
}

// === impl PackedBalance ===

impl PackedBalance {
    /// A sender waits: whoever returns credits must serve it, and nobody else may take any.
    pub(in crate::channel) const WAITING: i64 = 1;
    /// The channel takes no more messages.
    pub(in crate::channel) const CLOSED: i64 = 2;

    const FLAGS: i64 = Self::WAITING | Self::CLOSED;

    pub(in crate::channel) const fn balance(self) -> Credits {
        Credits(self.0 & !Self::FLAGS)
    }

    pub(in crate::channel) const fn is_waiting(self) -> bool {
        self.0 & Self::WAITING != 0
    }

    pub(in crate::channel) const fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    pub(in crate::channel) const fn closed_flag(self) -> i64 {
        self.0 & Self::CLOSED
    }

    pub(in crate::channel) const fn less(self, taken: Credits) -> Self {
        Self(self.0 - taken.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ITEMS: i64 = Window::ITEMS_MAX as i64;
    const BYTES: i64 = Window::BYTES_MAX as i64;

    #[test]
    fn a_message_weighs_at_least_one_item_and_at_most_the_most() {
        assert_eq!(Credits::charge(Weight::NONE), Credits::new(1, 0));
        let heaviest = Credits::charge(Weight { items: u32::MAX, bytes: u32::MAX });
        assert_eq!(heaviest, Credits::new(ITEMS, i64::from(u32::MAX)));
    }

    #[test]
    fn a_window_counts_no_more_than_its_word_holds() {
        let widest = Window { items: u32::MAX, bytes: u64::MAX };
        assert_eq!(Credits::window(widest), Credits::new(ITEMS, BYTES));
    }

    proptest! {
        /// Lanes never touch each other or the flags, at any sign.
        #[test]
        fn lanes_add_up_by_themselves(
            (items, taken_items) in (-ITEMS..=ITEMS).prop_flat_map(|i| (Just(i), within(i, ITEMS))),
            (bytes, taken_bytes) in (-BYTES..=BYTES).prop_flat_map(|b| (Just(b), within(b, BYTES))),
            flags in 0_i64..4,
        ) {
            let word = PackedBalance(Credits::new(items, bytes).to_bits() | flags);
            prop_assert_eq!((word.balance().items(), word.balance().bytes()), (items, bytes));
            let left = word.less(Credits::new(taken_items, taken_bytes));
            prop_assert_eq!(left.0 & 3, flags);
            prop_assert_eq!(left.balance().items(), items - taken_items);
            prop_assert_eq!(left.balance().bytes(), bytes - taken_bytes);
            let fits = taken_items <= items && taken_bytes <= bytes;
            prop_assert_eq!(Credits::new(taken_items, taken_bytes).fits(word.balance()), fits);
        }
    }

    /// Range that can be subtracted from a lane without overflow.
    fn within(lane: i64, most: i64) -> std::ops::RangeInclusive<i64> {
        (lane - most).max(-most)..=(lane + most).min(most)
    }
}
