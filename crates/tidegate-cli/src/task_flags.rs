use crate::threshold_flags::AdminFlag;
use clap::{Args, ValueEnum};

pub const SUBMIT_EXAMPLES: &str = "\
Examples:
  tidegate submit hello.py --wait
  tidegate submit --runtime python hello.py --wait -- --count 3
  tidegate submit --runtime sh --code 'echo hello' --wait
  generate | tidegate submit --runtime python - --timeout 5m --retries 2
  id=$(tidegate submit nightly.sh --key nightly-2026-11-16) && tidegate status $id

With --wait, what the task writes is written here as it comes, and the exit code is the task's.

Exit codes: 0 submitted, or succeeded with --wait; with --wait the task's own, 1 … 125, if it failed with one;
1 if it failed in another way, was cancelled, or no node answers; 2 wrong flags, or refused as it was asked for;
130 if Ctrl-C ended the waiting.";

pub const STATUS_EXAMPLES: &str = "\
Examples:
  tidegate status                 how many tasks there are, and who does them
  tidegate status nightly-7       everything about one
  tidegate status nightly-7 --json

Exit codes: 0 ok, 1 no node there or no such task, 2 wrong flags.";

pub const TASKS_EXAMPLES: &str = "\
Examples:
  tidegate tasks
  tidegate tasks --status queued --limit 100
  tidegate tasks --status failed --json

Exit codes: 0 ok, 1 no node there, 2 wrong flags.";

pub const CANCEL_EXAMPLES: &str = "\
Examples:
  tidegate cancel nightly-7
  tidegate cancel nightly-7 nightly-8

A task that waits is over at once; one that runs is told to stop, and over when it has.

Exit codes: 0 all are cancelled or told to stop, 1 some are over or not there, 2 wrong flags.";

pub const LOGS_EXAMPLES: &str = "\
Examples:
  tidegate logs nightly-7
  tidegate logs nightly-7 --follow
  tidegate logs nightly-7 --stderr

Exit codes: 0 ok, 1 no node there or no such task, 2 wrong flags.";

/// A task that is to be done.
#[derive(Debug, Args)]
pub struct SubmitFlags {
    /// What to run; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "code", conflicts_with = "code")]
    pub file: Option<String>,
    /// What to run, as text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub code: Option<String>,
    /// What runs it, such as python; without it by the file's name: .py is python, .sh is sh
    #[arg(long, visible_alias = "language", value_name = "NAME")]
    pub runtime: Option<String>,
    /// Arguments of the code
    #[arg(last = true, value_name = "ARG")]
    pub args: Vec<String>,
    /// A variable of its environment; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Its name; without it one is made
    #[arg(long)]
    pub id: Option<String>,
    /// Submitted again with the same key, it is the same task, and done once
    #[arg(long)]
    pub key: Option<String>,
    /// Who goes first
    #[arg(long, value_enum)]
    pub priority: Option<Priority>,
    /// How long one attempt may run, such as 500ms, 30s, 5m or 2h [default: the node's, mostly 60s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds, allow_hyphen_values = true)]
    pub timeout: Option<u64>,
    /// How often it is tried again if it fails [default: 0]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Wait for its end, and show what it writes
    #[arg(long)]
    pub wait: bool,
    /// As JSON; with --wait when it is over, with what it wrote
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

/// What is known of tasks.
#[derive(Debug, Args)]
pub struct StatusFlags {
    /// The task; without it all of them in short, and who does them
    pub id: Option<String>,
    /// As the node's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

/// Which tasks to list.
#[derive(Debug, Args)]
pub struct TasksFlags {
    /// Only those in this status
    #[arg(long, value_enum)]
    pub status: Option<Status>,
    /// At most so many, 1 … 500
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// Those after this place, which the page before names
    #[arg(long, value_name = "PLACE")]
    pub after: Option<String>,
    /// As the node's JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

/// Which tasks to stop.
#[derive(Debug, Args)]
pub struct CancelFlags {
    /// The tasks
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub admin: AdminFlag,
}

/// What of a task's output to show.
#[derive(Debug, Args)]
pub struct LogsFlags {
    /// The task
    pub id: String,
    /// Go on until it is over
    #[arg(long, short)]
    pub follow: bool,
    /// Only what it wrote to its standard output
    #[arg(long, conflicts_with = "stderr")]
    pub stdout: bool,
    /// Only what it wrote to its standard error
    #[arg(long)]
    pub stderr: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    High,
    Normal,
    Low,
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

// === impl Priority ===

impl Priority {
    pub fn word(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
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

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as LANG=C".to_owned()),
    }
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let expected =
        || format!("{text:?} is no time; expected 1ms or more, such as 500ms, 30s, 5m or 2h");
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let whole = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms));
    whole.filter(|whole| *whole > 0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser as _;

    fn submit(line: &[&str]) -> Result<SubmitFlags, String> {
        let line = ["tidegate", "submit"].iter().chain(line);
        match Cli::try_parse_from(line).map_err(|error| error.to_string())?.command {
            Command::Submit(flags) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_about_a_task_can_be_typed() {
        let flags = submit(&[
            "--runtime",
            "python",
            "x.py",
            "--env",
            "A=b=c",
            "--env",
            "D=",
            "--priority",
            "low",
            "--timeout",
            "90s",
            "--retries",
            "2",
            "--id",
            "n",
            "--key",
            "k",
            "--wait",
            "--",
            "-v",
            "--",
        ])
        .unwrap();
        assert_eq!(
            (flags.file.as_deref(), flags.runtime.as_deref()),
            (Some("x.py"), Some("python"))
        );
        assert_eq!(flags.env, [("A".into(), "b=c".into()), ("D".into(), String::new())]);
        assert_eq!((flags.timeout, flags.retries, flags.wait), (Some(90_000), Some(2), true));
        assert_eq!(flags.args, ["-v", "--"]);
        assert_eq!(
            submit(&["--code", "-1", "--language", "sh"]).unwrap().code.as_deref(),
            Some("-1")
        );
        assert_eq!(submit(&["-"]).unwrap().file.as_deref(), Some("-"));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        for (line, told) in [
            (&[][..], "<FILE>"),
            (&["x.py", "--code", "y"][..], "cannot be used with"),
            (&["x.py", "--env", "A"][..], "NAME=VALUE"),
            (&["x.py", "--env", "=b"][..], "NAME=VALUE"),
            (&["x.py", "--priority", "critical"][..], "high, normal, low"),
            (&["x.py", "--retries", "-1"][..], "-1"),
        ] {
            let error = submit(line).unwrap_err();
            assert!(error.contains(told), "{line:?}: {error}");
        }
        for bad in ["-5s", "0s", "5", "s", "1d", "1.5s", "99999999999999999999s", ""] {
            let error = submit(&["x.py", "--timeout", bad]).unwrap_err();
            assert!(error.contains("such as 500ms, 30s, 5m or 2h"), "{bad}: {error}");
        }
    }

    #[test]
    fn words_are_those_of_the_node() {
        use tidegate::task::TaskStatus;
        let words: Vec<_> = Status::value_variants().iter().map(|status| status.word()).collect();
        assert_eq!(words, TaskStatus::ALL.map(TaskStatus::name));
        for priority in Priority::value_variants() {
            let parsed = tidegate::MessagePriority::from_name(priority.word()).unwrap();
            assert_eq!(parsed.name(), priority.word());
        }
    }
}
