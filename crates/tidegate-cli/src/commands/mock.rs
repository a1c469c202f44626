use super::signals::Signals;
use crate::failure::Failure;
use crate::mock_flags::MockFlags;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_server::mock::{Mock, MockConfig, MockMistake};
use tokio::runtime::Builder;

/// What `tidegate mock` prints once it listens: where, how large it is, and what to try.
struct Started<'a> {
    mock: &'a Mock,
    config: &'a MockConfig,
}

/// `tidegate mock`: starts a synthetic inference server and stays until a signal ends it.
pub fn run(flags: &MockFlags) -> Result<ExitCode, Failure> {
    let config = flags.config();
    refuse(&config.mistakes())?;
    let failure = |error: io::Error| Failure::Runtime(error.to_string());
    // Before the mock starts, so that no signal from then on is lost.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failure)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(failure)?;
    let mock = Mock::start(config.clone()).map_err(|error| {
        let address = config.listen;
        Failure::Runtime(format!(
            "can't listen on {address}: {error}; is another process using it? Choose another with --listen"
        ))
    })?;
    // Whoever closed our output did not ask us to stop.
    let _ = writeln!(io::stdout(), "{}", Started { mock: &mock, config: &config });
    runtime.block_on(signals.next());
    Ok(ExitCode::SUCCESS)
}

fn refuse(mistakes: &[MockMistake]) -> Result<(), Failure> {
    let mut text = match mistakes.len() {
        0 => return Ok(()),
        1 => "1 mistake in the flags:".to_owned(),
        several => format!("{several} mistakes in the flags:"),
    };
    for mistake in mistakes {
        // Writing to a String can't fail.
        let _ = write!(text, "\n  --{mistake}");
    }
    Err(Failure::Usage(text))
}

// === impl Started ===

impl fmt::Display for Started<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (url, engine) = (format!("http://{}", self.mock.address()), &self.config.engine);
        let model = self.config.models.first().map_or("", String::as_str);
        let faults = if self.config.faults { " /mock/fault" } else { "" };
        writeln!(f, "{} is a mock of an inference server: it computes nothing", self.config.name)?;
        writeln!(f)?;
        writeln!(f, "  clients    {url}  (/v1/chat/completions /v1/completions /v1/models)")?;
        writeln!(f, "  operators  {url}  (/health /metrics{faults})")?;
        writeln!(f, "  models     {}", self.config.models.join(", "))?;
        writeln!(
            f,
            "  each rank  {} KV blocks of {} tokens, {} running, {} waiting; ranks: {}",
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
        write!(f, "Ctrl-C stops it.")
    }
}

/// A line for the shell that asks for a chat completion, streamed.
pub fn chat_line(flags: &str, url: &str, model: &str) -> String {
    // As JSON it can hold every character; within single quotes of the shell only this one ends them.
    let model = format!("{model:?}").replace('\'', "'\\''");
    format!(
        "curl -sN{flags} {url}/v1/chat/completions -d '{{\"model\": {model}, \"stream\": true, \
         \"max_tokens\": 20, \"messages\": [{{\"role\": \"user\", \"content\": \"hello\"}}]}}'"
    )
}
