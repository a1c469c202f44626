use super::sending::{Ended, Sending};
use super::source::Source;
use super::summary::Report;
use crate::commands::signals::Signals;
use crate::failure::Failure;
use crate::send_flags::SendFlags;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tokio::runtime::Builder;

/// `tidegate send`.
pub fn run(flags: &SendFlags) -> Result<ExitCode, Failure> {
    let source = Source::open(flags)?;
    let failure = |error: io::Error| Failure::Runtime(error.to_string());
    // One thread sends; the one that reads and parses is the source's own.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
    let (report, ended) = runtime.block_on(async {
        let signals = Signals::listen().map_err(failure)?;
        let sending = Sending::start(flags, &source, signals)?;
        Ok::<_, Failure>(sending.run(source).await)
    })?;
    tell(flags, &report);
    match ended {
        Ended::Early(why) => Err(Failure::Runtime(why)),
        Ended::Done if report.is_complete() => Ok(ExitCode::SUCCESS),
        Ended::Done => Ok(ExitCode::FAILURE),
    }
}

fn tell(flags: &SendFlags, report: &Report) {
    let text = match (flags.json, flags.quiet) {
        (true, _) => format!("{:#}\n", report.json()),
        (false, true) => return,
        (false, false) => format!("{report}\n"),
    };
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(text.as_bytes());
}
