use clap::Args;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use tidegate::frame::{FrameLimits, SenderName};
use tidegate::line_protocol::{LineConfig, Precision};

pub const EXAMPLES: &str = "\
Examples:
  tidegate send usage.lp                        to a server on this machine
  tidegate send usage.lp --to 10.0.0.5:7070 --timeout 60
  my-meter | tidegate send - --sender meter-7   what a program writes, as it comes
  tidegate send usage.lp --rate 5000 --json     5,000 records a second, the summary as JSON

Sent again, the same file does not count twice: it is known by what is in it, and the server knows which parts
of it are stored. That also resumes what was interrupted. To count the same file again on purpose, give another
--sender. A file that was changed, or is sent with another --batch, --precision or --tenant-tag, is another
file: all of it counts again.

What comes on standard input counts each time it is sent, also with --sender.

Exit codes: 0 all is stored, 1 something is not, 2 wrong flags.";

/// What `tidegate send` was told.
#[derive(Debug, Args)]
pub struct SendFlags {
    /// A file in line protocol; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The server: its port for frames
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7070", value_parser = address)]
    pub to: String,
    /// Who sends; without it a name that is made for the file, or at random for standard input
    #[arg(long, value_name = "NAME")]
    pub sender: Option<SenderName>,
    /// Records in a batch, at most what the server takes
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = batch_parser())]
    pub batch: u32,
    /// What one of a line's timestamp is, as the server's ingest.line_precision
    #[arg(long, value_name = "UNIT", default_value = "ns", value_parser = precision)]
    pub precision: Precision,
    /// The tag of a line that names who pays, as the server's ingest.tenant_tag
    #[arg(long, value_name = "TAG", default_value = "tenant")]
    pub tenant_tag: String,
    /// At most so many records a second
    #[arg(long, value_name = "RECORDS")]
    pub rate: Option<NonZeroU32>,
    /// Give up when nothing was stored for so long; without it the server is waited for
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,
    /// Send nothing of a file in which a line is wrong; of standard input nothing behind the first
    #[arg(long)]
    pub strict: bool,
    /// The summary as a JSON object
    #[arg(long)]
    pub json: bool,
    /// No progress and no summary, only what went wrong
    #[arg(long, short)]
    pub quiet: bool,
}

// === impl SendFlags ===

impl SendFlags {
    pub fn is_stdin(&self) -> bool {
        self.file == Path::new("-")
    }

    /// How lines become records.
    pub fn lines(&self) -> LineConfig {
        let (tenant_tag, precision) = (self.tenant_tag.clone(), self.precision);
        LineConfig { tenant_tag, precision, ..LineConfig::default() }
    }

    /// Where batches are cut.
    pub fn limits(&self) -> FrameLimits {
        FrameLimits { batch_records_max: self.batch, ..FrameLimits::default() }
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    Precision::from_name(text).ok_or_else(|| "write ns, us, ms or s".to_owned())
}

fn address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    match port.map(|(_, port)| port.parse::<u16>()) {
        Some(Ok(port)) if port > 0 => Ok(text.to_owned()),
        _ => Err("write HOST:PORT, such as 127.0.0.1:7070".to_owned()),
    }
}

fn batch_parser() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(FrameLimits::default().batch_records_max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser;

    fn parse(line: &str) -> Result<SendFlags, String> {
        let cli = Cli::try_parse_from(format!("tidegate send {line}").split_whitespace());
        match cli.map_err(|error| error.to_string())?.command {
            Command::Send(flags) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_typed_is_what_holds() {
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
    fn what_can_not_work_is_refused_with_what_would() {
        let wrong = [
            ("a.lp --to db", "HOST:PORT"),
            ("a.lp --to db:0", "HOST:PORT"),
            ("a.lp --to :7070", "HOST:PORT"),
            ("a.lp --sender two,words", "sender's name"),
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
