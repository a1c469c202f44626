use clap::{Args, ValueEnum};
use hyper::Uri;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  tidegate drill --list                                 what there is
  tidegate drill load_sweep --short                     on a gateway and workers of its own
  tidegate drill load_sweep --html sweep.html           with charts, in a page that opens offline
  tidegate drill my.toml --target http://127.0.0.1:8000 on a gateway that runs, or any HTTP service
  tidegate drill slow_destination --target http://127.0.0.1:8000 \\
      --workers http://127.0.0.1:9000,http://127.0.0.1:9001
                                                        with faults in workers: tidegate mock --faults
  tidegate drill --record decisions.ndjson --for 10m    what a gateway that runs decides, for sim --replay

Load comes by the clock, whatever the target does, and a request's time counts from when it was due. A target's
URL with a path is asked for that path; without one for /work, as the mock has it.

Exit codes: 0 all that was expected came, 1 something did not or the target can't be reached, 2 wrong flags or a
wrong scenario, 130 stopped by Ctrl-C.";

/// What `tidegate drill` was told.
#[derive(Debug, Args)]
pub struct DrillFlags {
    /// A scenario that ships, by its name, or a file with one
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "record"])]
    pub scenario: Option<String>,
    /// Says in a line what each scenario that ships is for
    #[arg(long, conflicts_with = "scenario")]
    pub list: bool,
    /// What is drilled: http://host:port; without it a gateway and workers that are started for it. With
    /// --record a gateway's admin port, http://127.0.0.1:8001 by default
    #[arg(long, value_name = "URL", value_parser = url)]
    pub target: Option<Uri>,
    /// The target's workers, mocks with --faults, in which the scenario's faults are made
    #[arg(
        long,
        value_name = "URL,…",
        value_delimiter = ',',
        value_parser = url,
        requires = "target"
    )]
    pub workers: Vec<Uri>,
    /// A tenant's token at the target; may be repeated
    #[arg(long = "token", value_name = "NAME=TOKEN", value_parser = token, requires = "target")]
    pub tokens: Vec<(String, String)>,
    /// What critical classes ask for
    #[arg(long, value_name = "PATH", default_value = DrillFlags::CRITICAL_PATH, value_parser = path)]
    pub critical_path: String,
    /// The scenario's short form
    #[arg(long)]
    pub short: bool,
    /// Where all chance comes from, instead of what the scenario says
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How long it runs, such as 30s or 2m; all of the scenario's times shrink or grow with it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// How the target is spoken to
    #[arg(long, value_name = "VERSION", default_value = "h1")]
    pub protocol: ProtocolFlag,
    /// Connections at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = DrillFlags::CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(1..=60_000)
    )]
    pub connections: u32,
    /// Writes the report as a page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The report as JSON, and nothing else on standard output
    #[arg(long)]
    pub json: bool,
    /// Writes down what a running gateway decides, until --for is over or Ctrl-C
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "list", "html", "json"])]
    pub record: Option<PathBuf>,
    /// With --record: how long, such as 60s or 10m
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "60s",
        value_parser = duration,
        requires = "record"
    )]
    pub lasts: Duration,
    /// With --record: overwrites the file
    #[arg(long, requires = "record", conflicts_with = "scenario")]
    pub force: bool,
    /// No progress bar
    #[arg(long)]
    pub no_progress: bool,
}

// === impl DrillFlags ===

impl DrillFlags {
    /// What critical classes ask for by default.
    pub const CRITICAL_PATH: &'static str = "/health/ready";
    /// Connections at once by default.
    pub const CONNECTIONS: u32 = 4096;
}

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolFlag {
    /// HTTP/1.1
    H1,
    /// HTTP/2 in plain text, with prior knowledge
    H2,
}

fn url(text: &str) -> Result<Uri, String> {
    let shape = "write http://host:port, such as http://127.0.0.1:8000";
    let uri: Uri = text.parse().map_err(|_| shape.to_owned())?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        Some("https") => Err(format!("load is sent in plain text: {shape}")),
        _ => Err(shape.to_owned()),
    }
}

fn path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && text.parse::<Uri>().is_ok();
    is_path.then(|| text.to_owned()).ok_or_else(|| "write a path, such as /health".to_owned())
}

fn token(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, token)| !name.is_empty() && !token.is_empty());
    let (name, token) = parts.ok_or("write NAME=TOKEN with the name of a tenant")?;
    Ok((name.to_owned(), token.to_owned()))
}

fn duration(text: &str) -> Result<Duration, String> {
    let shape = || "write a time from 100ms to 24h, such as 30s or 2m".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(shape()),
    };
    let number: f64 = number.parse().map_err(|_| shape())?;
    let seconds = number * seconds;
    (0.1..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds)).ok_or_else(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser;

    fn parse(line: &str) -> Result<DrillFlags, String> {
        let cli = Cli::try_parse_from(format!("tidegate drill {line}").split_whitespace());
        match cli.map_err(|error| error.to_string())?.command {
            Command::Drill(flags) => Ok(*flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_typed_is_what_holds() {
        let flags = parse(
            "a.toml --target http://h:1/p?q --workers http://h:2,http://h:3 --token acme=t=1 \
             --seed 7 --duration 90s --protocol h2 --connections 9 --json --short",
        )
        .unwrap();
        assert_eq!(flags.scenario.as_deref(), Some("a.toml"));
        assert_eq!(flags.target.map(|uri| uri.to_string()).as_deref(), Some("http://h:1/p?q"));
        assert_eq!(flags.workers.len(), 2);
        assert_eq!(flags.tokens, [("acme".to_owned(), "t=1".to_owned())]);
        assert_eq!((flags.seed, flags.connections), (Some(7), 9));
        assert_eq!(flags.duration, Some(Duration::from_secs(90)));
        assert_eq!((flags.protocol, flags.json, flags.short), (ProtocolFlag::H2, true, true));
        assert!(parse("--list").unwrap().list);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for wrong in ["", "s", "0s", "25h", "1d", "-1s", "1.2.3s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_can_not_work_is_refused_with_what_would() {
        let wrong = [
            ("", "SCENARIO"),
            ("a --list", "--list"),
            ("a --record f", "--record"),
            ("a --force", "cannot be used with '--force'"),
            ("--record f --for soon", "30s"),
            ("a --target 127.0.0.1:8000", "http://"),
            ("a --target https://h:1", "plain text"),
            ("a --workers http://h:2", "--target"),
            ("a --target http://h:1 --token acme", "NAME=TOKEN"),
            ("a --protocol h3", "h2"),
            ("a --duration soon", "30s"),
            ("a --connections 0", "1..=60000"),
            ("a --critical-path health", "/health"),
        ];
        for (line, says) in wrong {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
