use crate::tasks::executor::Executor;

/// Location of an executor.
#[derive(Clone)]
pub enum ExecutorTarget {
    /// Base URL of an executor that speaks the HTTP contract.
    Url(String),
    /// Executor of this process.
    Local(Executor),
}
