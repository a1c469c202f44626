use clap::{Args, ValueEnum};
use hyper::Uri;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  tidegate drill --list                                 lists the scenarios
  tidegate drill load_sweep --short                     on a test bed: a gateway and mock upstreams
  tidegate drill load_sweep --html sweep.html           report with charts as an HTML file
  tidegate drill my.toml --target http://127.0.0.1:8000  on a running gateway or any HTTP service
  tidegate drill slow_upstream --target http://127.0.0.1:8000 \\
      --upstreams http://127.0.0.1:9000,http://127.0.0.1:9001
                                                        with faults, in mocks with --faults
  tidegate drill --record decisions.ndjson --for 10m    records decisions for sim --replay

The load is open-loop: requests are sent on schedule, however slow the target is, and latency \
counts from the scheduled time. Requests use the path of the target URL; without one they use \
/work, which the mock serves.

Exit codes: 0 all expectations met, 1 an expectation missed or the target not reachable, \
2 invalid flags or scenario, 130 stopped by Ctrl-C.";

/// Flags of `tidegate drill`.
#[derive(Debug, Args)]
pub struct DrillFlags {
    /// Name of a built-in scenario, or a scenario file
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "record"])]
    pub scenario: Option<String>,
    /// List the built-in scenarios
    #[arg(long, conflicts_with = "scenario")]
    pub list: bool,
    /// URL to drill, http://host:port; without it the drill starts its own gateway and upstreams. With --record
    /// the gateway's admin address [default with --record: http://127.0.0.1:8001]
    #[arg(long, value_name = "URL", value_parser = url)]
    pub target: Option<Uri>,
    /// Upstreams of the target, started as `tidegate mock --faults`, to inject the scenario's faults into
    #[arg(
        long,
        value_name = "URL,…",
        value_delimiter = ',',
        value_parser = url,
        requires = "target"
    )]
    pub upstreams: Vec<Uri>,
    /// Token of a tenant at the target; repeatable
    #[arg(long = "token", value_name = "NAME=TOKEN", value_parser = token, requires = "target")]
    pub tokens: Vec<(String, String)>,
    /// Path that critical classes request
    #[arg(long, value_name = "PATH", default_value = DrillFlags::CRITICAL_PATH, value_parser = path)]
    pub critical_path: String,
    /// Run the short form of the scenario
    #[arg(long)]
    pub short: bool,
    /// Seed of the random numbers; without it that of the scenario
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Duration, such as 30s or 2m; all times of the scenario are scaled to it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// HTTP version
    #[arg(long, value_name = "VERSION", default_value = "h1")]
    pub protocol: ProtocolFlag,
    /// Limit of connections
    #[arg(
        long,
        value_name = "N",
        default_value_t = DrillFlags::CONNECTIONS,
        value_parser = clap::value_parser!(u32).range(1..=60_000)
    )]
    pub connections: u32,
    /// Write the report with charts to an HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print the report as JSON, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Record the decisions of a running gateway, until --for is over or Ctrl-C
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "list", "html", "json"])]
    pub record: Option<PathBuf>,
    /// With --record: duration, such as 60s or 10m
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "60s",
        value_parser = duration,
        requires = "record"
    )]
    pub lasts: Duration,
    /// With --record: overwrite the file
    #[arg(long, requires = "record", conflicts_with = "scenario")]
    pub force: bool,
    /// Hide the progress bar
    #[arg(long)]
    pub no_progress: bool,
}

// === impl DrillFlags ===

impl DrillFlags {
    /// Default path of critical classes.
    pub const CRITICAL_PATH: &'static str = "/health/ready";
    /// Default limit of connections.
    pub const CONNECTIONS: u32 = 4096;
}

/// HTTP version of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolFlag {
    /// HTTP/1.1
    H1,
    /// HTTP/2 in plain text, with prior knowledge
    H2,
}

fn url(text: &str) -> Result<Uri, String> {
    let shape = "expected http://host:port, such as http://127.0.0.1:8000";
    let uri: Uri = text.parse().map_err(|_| shape.to_owned())?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(uri),
        Some("https") => Err(format!("the load generator has no TLS: {shape}")),
        _ => Err(shape.to_owned()),
    }
}

fn path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && text.parse::<Uri>().is_ok();
    is_path.then(|| text.to_owned()).ok_or_else(|| "expected a path, such as /health".to_owned())
}

fn token(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, token)| !name.is_empty() && !token.is_empty());
    let (name, token) = parts.ok_or("expected NAME=TOKEN with the name of a tenant")?;
    Ok((name.to_owned(), token.to_owned()))
}

fn duration(text: &str) -> Result<Duration, String> {
    let shape = || "expected a duration from 100ms to 24h, such as 30s or 2m".to_owned();
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
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parse(line: &str) -> Result<DrillFlags, String> {
        let cli = Cli::try_parse_from(format!("tidegate drill {line}").split_whitespace());
        match cli.map_err(|error| error.to_string())?.command {
            Command::Drill(flags) => Ok(*flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_flag_counts() {
        let flags = parse(
            "a.toml --target http://h:1/p?q --upstreams http://h:2,http://h:3 --token acme=t=1 \
             --seed 7 --duration 90s --protocol h2 --connections 9 --json --short",
        )
        .unwrap();
        assert_eq!(flags.scenario.as_deref(), Some("a.toml"));
        assert_eq!(flags.target.map(|uri| uri.to_string()).as_deref(), Some("http://h:1/p?q"));
        assert_eq!(flags.upstreams.len(), 2);
        assert_eq!(flags.tokens, [("acme".to_owned(), "t=1".to_owned())]);
        assert_eq!((flags.seed, flags.connections), (Some(7), 9));
        assert_eq!(flags.duration, Some(Duration::from_secs(90)));
        assert_eq!((flags.protocol, flags.json, flags.short), (ProtocolFlag::H2, true, true));
        assert!(parse("--list").unwrap().list);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for wrong in ["", "s", "0s", "25h", "1d", "-1s", "1.2.3s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn invalid_flags_are_refused_with_what_is_expected() {
        let wrong = [
            ("", "SCENARIO"),
            ("a --list", "--list"),
            ("a --record f", "--record"),
            ("a --force", "cannot be used with '--force'"),
            ("--record f --for soon", "30s"),
            ("a --target 127.0.0.1:8000", "http://"),
            ("a --target https://h:1", "no TLS"),
            ("a --upstreams http://h:2", "--target"),
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
