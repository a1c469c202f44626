/// A defect that is planted to test the invariants. Each was made by a real system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorFlaw {
    /// A manager without a reply sends the same attempt again, instead of following it.
    SendsAgain,
    /// An executor releases a slot each time that it is asked for the end of the execution.
    GivesBackTwice,
    /// An executor starts an attempt that was cancelled before it arrived.
    ForgetsTombstones,
    /// A manager sends an attempt before it persists its executor, and reuses the number after a restart.
    ReusesNumbers,
}
