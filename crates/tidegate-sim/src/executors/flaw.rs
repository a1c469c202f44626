/// Mistakes that others have made, put in on purpose: whoever looks for violations has to find these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorFlaw {
    /// A manager whose request was not answered sends the same attempt again, instead of looking for it.
    SendsAgain,
    /// An executor gives a slot back each time that it is asked for the end of what ran there.
    GivesBackTwice,
    /// An executor starts what was cancelled before it came.
    ForgetsTombstones,
    /// A manager sends an attempt before it is kept where, and when it is started again gives the same number
    /// again.
    ReusesNumbers,
}
