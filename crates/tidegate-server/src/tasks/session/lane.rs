/// Bytes that begin a connection, before TLS.
pub const PREAMBLE_BYTES: usize = 4;

/// Purpose of one of the two connections of a session. They share neither socket, thread nor queue, so that
/// control does not wait for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Dispatches, cancellations, leases, and the answers to them.
    Control,
    /// Progress, output, ends and statistics.
    Data,
}

// === impl Lane ===

impl Lane {
    /// First bytes of a connection. In plain text, so that the manager chooses the thread of a connection before
    /// its TLS handshake; the [`Join`](super::Join) that follows repeats the lane.
    #[must_use]
    pub const fn preamble(self) -> [u8; PREAMBLE_BYTES] {
        match self {
            Self::Control => *b"tgc1",
            Self::Data => *b"tgd1",
        }
    }

    /// Lane of a connection by its first bytes.
    #[must_use]
    pub fn of_preamble(bytes: [u8; PREAMBLE_BYTES]) -> Option<Self> {
        [Self::Control, Self::Data].into_iter().find(|lane| lane.preamble() == bytes)
    }

    /// Name in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
        }
    }
}
