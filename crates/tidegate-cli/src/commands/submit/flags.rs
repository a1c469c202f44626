use crate::admin_client::AdminFlag;
use clap::{Args, ValueEnum};

pub const EXAMPLES: &str = "\
Examples:
  tidegate submit hello.py --wait
  tidegate submit --runtime python hello.py --wait -- --count 3
  tidegate submit --runtime sh --code 'echo hello' --wait
  generate | tidegate submit --runtime python - --timeout 5m --retries 2
  id=$(tidegate submit nightly.sh --key nightly-2026-11-16) && tidegate status $id

With --wait the output of the task is printed as it arrives, and the exit code is the task's.

Exit codes: 0 submitted, or succeeded with --wait; 1 failed, cancelled, or node not reachable; \
2 invalid flags or task; 130 Ctrl-C ended the wait. With --wait a failed task's own exit code, \
1 … 125, is used.";

/// Flags of `tidegate submit`.
#[derive(Debug, Args)]
pub struct SubmitFlags {
    /// File with the code; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "code", conflicts_with = "code")]
    pub file: Option<String>,
    /// Code as text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub code: Option<String>,
    /// Runtime, such as python; without it by the file name: .py is python, .sh is sh
    #[arg(long, visible_alias = "language", value_name = "NAME")]
    pub runtime: Option<String>,
    /// Arguments of the code
    #[arg(last = true, value_name = "ARG")]
    pub args: Vec<String>,
    /// Environment variable; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Task id; without it the node assigns one
    #[arg(long)]
    pub id: Option<String>,
    /// Idempotency key: submissions with the same key are one task
    #[arg(long)]
    pub key: Option<String>,
    /// Priority in the queue
    #[arg(long, value_enum)]
    pub priority: Option<Priority>,
    /// Timeout of an attempt, such as 500ms, 30s, 5m or 2h; 30 is 30s [default: that of the node, usually 60s]
    #[arg(long, value_name = "TIME", value_parser = milliseconds, allow_hyphen_values = true)]
    pub timeout: Option<u64>,
    /// Retries after a failure [default: 0]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Wait for the end and print the output
    #[arg(long)]
    pub wait: bool,
    /// Print JSON; with --wait at the end, including the output
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub admin: AdminFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    High,
    Normal,
    Low,
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

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, such as LANG=C".to_owned()),
    }
}

fn milliseconds(text: &str) -> Result<u64, String> {
    let expected = || {
        format!("{text:?} is not a duration; expected at least 1ms, such as 500ms, 30s, 5m or 2h")
    };
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit_ms = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
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
    use crate::cli::{Cli, Command};
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
    fn invalid_flags_are_refused() {
        for (line, message) in [
            (&[][..], "<FILE>"),
            (&["x.py", "--code", "y"][..], "cannot be used with"),
            (&["x.py", "--env", "A"][..], "NAME=VALUE"),
            (&["x.py", "--env", "=b"][..], "NAME=VALUE"),
            (&["x.py", "--priority", "critical"][..], "high, normal, low"),
            (&["x.py", "--retries", "-1"][..], "-1"),
        ] {
            let error = submit(line).unwrap_err();
            assert!(error.contains(message), "{line:?}: {error}");
        }
        for bad in ["-5s", "0s", "0", "s", "1d", "1.5s", "99999999999999999999s", ""] {
            let error = submit(&["x.py", "--timeout", bad]).unwrap_err();
            assert!(error.contains("such as 500ms, 30s, 5m or 2h"), "{bad}: {error}");
        }
    }

    #[test]
    fn names_are_those_of_the_node() {
        for priority in Priority::value_variants() {
            let parsed = tidegate::MessagePriority::from_name(priority.word()).unwrap();
            assert_eq!(parsed.name(), priority.word());
        }
    }
}
