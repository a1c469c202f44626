use crate::admin_client::{TOKEN_VARIABLE, TlsFlags, Token};
use clap::Args;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use tidegate::frame::{FrameLimits, SenderName};
use tidegate::line_protocol::{LineConfig, Precision};

pub const EXAMPLES: &str = "\
Examples:
  tidegate send usage.lp                        to a local ingest server
  tidegate send usage.lp --to 10.0.0.5:7070 --timeout 60
  tidegate send usage.lp --to meter-host:7070 --ca ca.pem
  my-meter | tidegate send - --sender meter-7   output of a program, as it is written
  tidegate send usage.lp --rate 5000 --json     5,000 records per second, summary as JSON

A file that is sent again does not count twice: a digest of its content identifies it, and the \
server knows which batches it has stored. Sending it again resumes an interrupted transfer. To \
count the same file again, use another --sender. A changed file, or another --batch, --precision or \
--tenant-tag, counts as a new file.

Records from standard input count each time they are sent, also with --sender.

Exit codes: 0 all records stored, 1 not all records stored, 2 invalid flags.";

/// Flags of `tidegate send`.
#[derive(Debug, Args)]
pub struct SendFlags {
    /// File in line protocol; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Frames address of the ingest server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7070", value_parser = address)]
    pub to: String,
    /// Send over TLS; --ca and --cert imply it
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub tls_files: TlsFlags,
    /// Sender name; without it derived from the file, or random for standard input
    #[arg(long, value_name = "NAME")]
    pub sender: Option<SenderName>,
    /// Token of a client; other users see arguments, so prefer the variable
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub token: Option<Token>,
    /// Records per batch
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = batch_parser())]
    pub batch: u32,
    /// Unit of timestamps: ns, us, ms or s; the same as ingest.line_precision of the server
    #[arg(long, value_name = "UNIT", default_value = "ns", value_parser = precision)]
    pub precision: Precision,
    /// Tag that names the tenant; the same as ingest.tenant_tag of the server
    #[arg(long, value_name = "TAG", default_value = "tenant")]
    pub tenant_tag: String,
    /// Limit of records per second
    #[arg(long, value_name = "RECORDS")]
    pub rate: Option<NonZeroU32>,
    /// Give up when nothing was stored for this long; without it wait for the server
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,
    /// Send nothing of a file with an invalid line; stop standard input at the first one
    #[arg(long)]
    pub strict: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Print only errors: no progress, no summary
    #[arg(long, short)]
    pub quiet: bool,
}

// === impl SendFlags ===

impl SendFlags {
    pub fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    /// Parser settings.
    pub fn lines(&self) -> LineConfig {
        let (tenant_tag, precision) = (self.tenant_tag.clone(), self.precision);
        LineConfig { tenant_tag, precision, ..LineConfig::default() }
    }

    /// Batch limits.
    pub fn limits(&self) -> FrameLimits {
        FrameLimits { batch_records_max: self.batch, ..FrameLimits::default() }
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    Precision::from_name(text).ok_or_else(|| "expected ns, us, ms or s".to_owned())
}

fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(port)) if port > 0 => Ok(text.to_owned()),
        _ => Err("expected HOST:PORT, such as 127.0.0.1:7070".to_owned()),
    }
}

fn batch_parser() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(FrameLimits::default().batch_records_max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parse(line: &str) -> Result<SendFlags, String> {
        let cli = Cli::try_parse_from(format!("tidegate send {line}").split_whitespace());
        match cli.map_err(|error| error.to_string())?.command {
            Command::Send(flags) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_flag_counts() {
        let flags = parse("- --to db:7 --sender a/b --batch 9 --rate 5 --timeout 3 -q").unwrap();
        assert!(flags.is_stdin() && flags.quiet && !flags.strict);
        assert_eq!((flags.to.as_str(), flags.limits().batch_records_max), ("db:7", 9));
        assert_eq!((flags.rate.map(NonZeroU32::get), flags.timeout), (Some(5), Some(3)));
        let plain = parse("a.lp").unwrap();
        assert_eq!((plain.to.as_str(), plain.lines()), ("127.0.0.1:7070", LineConfig::default()));
        let lines = parse("a.lp --precision ms --tenant-tag customer").unwrap().lines();
        assert_eq!((lines.precision, &*lines.tenant_tag), (Precision::Ms, "customer"));
    }

    #[test]
    fn invalid_flags_are_refused_with_what_is_expected() {
        let wrong = [
            ("a.lp --to db", "HOST:PORT"),
            ("a.lp --to db:0", "HOST:PORT"),
            ("a.lp --to :7070", "HOST:PORT"),
            ("a.lp --sender two,words", "sender name"),
            ("a.lp --precision h", "ns, us, ms or s"),
            ("a.lp --batch 0", "1..=4096"),
            ("a.lp --batch 5000", "1..=4096"),
            ("a.lp --rate 0", "--rate"),
            ("a.lp --timeout 0", "--timeout"),
            ("", "FILE"),
        ];
        for (line, says) in wrong {
            let error = parse(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
