use super::flags::SendFlags;
use super::sending::{Ended, Sending};
use super::source::Source;
use super::summary::Report;
use crate::failure::Failure;
use crate::shutdown::Signals;
use crate::terminal::print;
use std::process::ExitCode;
use tokio::runtime::Builder;

/// `tidegate send`.
pub fn run(flags: &SendFlags) -> Result<ExitCode, Failure> {
    let source = Source::open(flags)?;
    // This thread sends; the source reads and parses on another.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    let (report, ended) = runtime.block_on(async {
        let signals = Signals::listen().map_err(Failure::runtime)?;
        let sending = Sending::start(flags, &source, signals)?;
        Ok::<_, Failure>(sending.run(source).await)
    })?;
    print_report(flags, &report);
    match ended {
        Ended::Early(why) => Err(Failure::Runtime(why)),
        Ended::Done if report.is_complete() => Ok(ExitCode::SUCCESS),
        Ended::Done => Ok(ExitCode::FAILURE),
    }
}

fn print_report(flags: &SendFlags, report: &Report) {
    let text = match (flags.json, flags.quiet) {
        (true, _) => format!("{:#}\n", report.json()),
        (false, true) => return,
        (false, false) => format!("{report}\n"),
    };
    print(&text);
}
