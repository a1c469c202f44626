/// End of a request at an upstream, as the limit counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamOutcome {
    /// A complete response. Its latency is a measurement.
    Success,
    /// A refusal by the upstream: 429, 503 or 529.
    Refused,
    /// No response in time.
    TimedOut,
    /// No connection, or a connection that broke.
    ConnectFailed,
    /// The client left before the response began. The upstream may go on with the request.
    Abandoned,
    /// An end that says nothing about the upstream: the client left during the response, or the request was
    /// malformed.
    Ignored,
}

// === impl UpstreamOutcome ===

impl UpstreamOutcome {
    /// Returns `true` if the upstream gave no response at all.
    #[must_use]
    pub const fn is_silence(self) -> bool {
        matches!(self, Self::TimedOut | Self::ConnectFailed)
    }

    /// Returns `true` if the upstream gave a complete response, be it a refusal.
    pub(super) const fn is_response(self) -> bool {
        matches!(self, Self::Success | Self::Refused)
    }
}
