use crate::admin_client::AdminFlag;
use clap::{Args, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate tasks
  tidegate tasks --status queued --limit 100
  tidegate tasks --status failed --json

Exit codes: 0 ok, 1 node not reachable, 2 invalid flags.";

/// Flags of `tidegate tasks`.
#[derive(Debug, Args)]
pub struct TasksFlags {
    /// Only tasks in this status
    #[arg(long, value_enum)]
    pub status: Option<Status>,
    /// Limit of tasks, 1 … 500
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// Continue after this cursor, which the previous page prints
    #[arg(long, value_name = "CURSOR")]
    pub after: Option<String>,
    /// Print the node's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Status {
    Queued,
    Provisioning,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

// === impl Status ===

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::task::TaskStatus;

    #[test]
    fn names_are_those_of_the_node() {
        let words: Vec<_> = Status::value_variants().iter().map(|status| status.word()).collect();
        assert_eq!(words, TaskStatus::ALL.map(TaskStatus::name));
    }
}
