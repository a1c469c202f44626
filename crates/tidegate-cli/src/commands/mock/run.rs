use super::flags::MockFlags;
use crate::banner::chat_line;
use crate::failure::Failure;
use crate::shutdown::Signals;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_testkit::mock::{Mock, MockConfig, MockConfigError};
use tokio::runtime::Builder;

/// Start banner of `tidegate mock`: addresses, size and examples.
struct Started<'a> {
    mock: &'a Mock,
    config: &'a MockConfig,
}

/// `tidegate mock`: starts a synthetic inference server and stays until a signal ends it.
pub fn run(flags: &MockFlags) -> Result<ExitCode, Failure> {
    let config = flags.config();
    refuse(&config.errors())?;
    let failure = |error: io::Error| Failure::Runtime(error.to_string());
    // Before the mock starts, so that no signal is lost.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
    let mut signals =
        runtime.block_on(async { Signals::listen_through_hangup(say_hangup) }).map_err(failure)?;
    let mock = Mock::start(config.clone()).map_err(|error| {
        let address = config.listen;
        Failure::Runtime(format!(
            "can't listen on {address}: {error}; choose another address with --listen"
        ))
    })?;
    // A closed standard output is no reason to stop.
    let _ = writeln!(io::stdout(), "{}", Started { mock: &mock, config: &config });
    runtime.block_on(signals.next());
    Ok(ExitCode::SUCCESS)
}

/// A closed terminal is no reason to end, and there may be no standard error any more.
fn say_hangup() {
    let _ = writeln!(io::stderr(), "tidegate mock: SIGHUP: still serving; SIGTERM ends it");
}

fn refuse(errors: &[MockConfigError]) -> Result<(), Failure> {
    let mut text = match errors.len() {
        0 => return Ok(()),
        1 => "1 error in the flags:".to_owned(),
        several => format!("{several} errors in the flags:"),
    };
    for error in errors {
        // Writing to a String can't fail.
        let _ = write!(text, "\n  --{error}");
    }
    Err(Failure::Usage(text))
}

// === impl Started ===

impl fmt::Display for Started<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, engine) = (format!("http://{}", self.mock.address()), &self.config.engine);
        let model = self.config.models.first().map_or("", String::as_str);
        let faults = if self.config.faults { " /mock/fault" } else { "" };
        writeln!(f, "{} is a mock inference server: it computes nothing", self.config.name)?;
        writeln!(f)?;
        writeln!(f, "  clients    {url}  (/v1/chat/completions /v1/completions /v1/models)")?;
        writeln!(f, "  operators  {url}  (/health /metrics{faults})")?;
        writeln!(f, "  models     {}", self.config.models.join(", "))?;
        writeln!(
            f,
            "  each rank  {} KV blocks of {} tokens, at most {} running and {} queued; ranks: {}",
            engine.kv_blocks,
            engine.block_size,
            engine.max_running,
            engine.max_waiting,
            engine.ranks
        )?;
        writeln!(f)?;
        writeln!(f, "Try:")?;
        writeln!(f, "  {}", chat_line("", &url, model))?;
        writeln!(f, "  curl -s {url}/metrics")?;
        writeln!(f)?;
        write!(f, "Ctrl-C stops.")
    }
}
