/// The phase of a serving process, for everything that must end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections and requests are accepted.
    Serving,
    /// No more connections are accepted; requests under way are finished.
    Draining,
}

// === impl Phase ===

impl Phase {
    /// The name in snapshots.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Draining => "draining",
        }
    }
}
