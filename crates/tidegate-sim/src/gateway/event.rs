/// What will happen. A request is named by its place in the slab; its stamp tells whether it is still in the
/// state that this was planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The gateway has answered a request of the control plane itself.
    Answered { id: u32, stamp: u32 },
    /// A worker has done its work.
    Done { id: u32, stamp: u32 },
    /// It waited for its worker as long as it may.
    WaitedMax { id: u32, stamp: u32 },
    /// Its client waits no longer for this attempt.
    Deadline { id: u32, attempt: u32 },
    /// Its client comes back.
    Return { id: u32, stamp: u32 },
    /// The advisors look.
    Observe,
    /// The workers are asked for their load.
    Scrape,
    /// The workers are tried to be reached.
    Probe,
    /// A fault begins or ends.
    Fault { index: u16 },
}
