use tidegate_core::admission::MessagePriority;

/// Small on purpose: the heap moves these around more than anything else is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A phase begins.
    Phase(u32),
    /// A new message. Void if its phase is over.
    Arrival { priority: MessagePriority, phase: u32 },
    /// The message that holds this place is done.
    End { place: u32 },
    /// A refused client comes back, for the how manieth time.
    Return { priority: MessagePriority, attempt: u32 },
    /// The advisor looks.
    Observe,
}
