/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Frames with acks.
    Frames,
    /// Lines of Influx line protocol, which are not answered.
    Lines,
}

impl Protocol {
    /// The name used in labels, answers and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Lines => "lines",
        }
    }
}
