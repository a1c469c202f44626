/// A planned event. A request is named by its index in the slab; the event is void once the request's stamp has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The gateway's own response to a control request is ready.
    Answered { id: u32, stamp: u32 },
    /// An upstream has finished a request.
    Done { id: u32, stamp: u32 },
    /// The longest wait for a slot is over.
    WaitedMax { id: u32, stamp: u32 },
    /// The client's deadline for this attempt is over.
    Deadline { id: u32, attempt: u32 },
    /// The client retries.
    Return { id: u32, stamp: u32 },
    /// The retry advisors observe the load.
    Observe,
    /// The gateway scrapes the load of the upstreams.
    Scrape,
    /// The gateway probes the upstreams.
    Probe,
    /// A fault begins or ends.
    Fault { index: u16 },
}
