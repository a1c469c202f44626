/// The progress of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// The ingestion runs.
    No,
    /// No more is taken in; records under way are stored and acknowledged.
    Drain,
    /// The time for that is over.
    Now,
}
