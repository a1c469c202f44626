use super::credits::Credits;
use super::error::SlotError;
use super::sender::WindowedSender;
use super::weight::Weigh;
use std::fmt;

/// Credits that were taken for a message that is still to come. Dropped, it returns them.
#[must_use = "dropped, it returns what it reserved"]
pub struct Slot<'a, T> {
    sender: &'a WindowedSender<T>,
    credits: Credits,
}

// === impl Slot ===

impl<'a, T> Slot<'a, T> {
    pub(super) fn new(sender: &'a WindowedSender<T>, credits: Credits) -> Self {
        sender.gate().reserve(credits);
        Self { sender, credits }
    }
}

impl<T: Weigh> Slot<'_, T> {
    /// Sends without waiting, also when the channel was closed after this was reserved. What was reserved and is
    /// not needed returns.
    ///
    /// # Errors
    ///
    /// The message, when it weighs more than was reserved, or when the receiver is gone.
    pub fn send(mut self, message: T) -> Result<(), SlotError<T>> {
        let charge = Credits::charge(message.weight());
        if !charge.fits(self.credits) {
            return Err(SlotError::TooHeavy(message));
        }
        self.sender.gate().unreserve(charge);
        self.credits -= charge;
        self.sender.push(message, charge).map_err(SlotError::Closed)
    }
}

impl<T> Drop for Slot<'_, T> {
    fn drop(&mut self) {
        if !self.credits.is_none() {
            self.sender.gate().unreserve(self.credits);
            self.sender.gate().give_back(self.credits);
        }
    }
}

impl<T> fmt::Debug for Slot<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("items", &self.credits.items())
            .field("bytes", &self.credits.bytes())
            .finish_non_exhaustive()
    }
}
