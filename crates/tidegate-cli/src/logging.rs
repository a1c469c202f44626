use crate::failure::Failure;
use std::io::IsTerminal;
use tidegate_server::config::{Loaded, LogConfig, LogFormat, Mistake, Mistakes, Origin};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

const KEY: &str = "log.level";

/// Whether the filter is one. The configuration knows the simple ones; only the subscriber knows all.
pub fn check(loaded: &Loaded) -> Result<(), Mistakes> {
    let Err(error) = filter(&loaded.config.log) else { return Ok(()) };
    let setting = loaded.origins.iter().find(|setting| setting.key == KEY);
    Err(Mistakes::from(Mistake {
        field: KEY.to_owned(),
        origin: setting.map_or(Origin::Default, |setting| setting.origin.clone()),
        given: format!("{:?}", loaded.config.log.level),
        allowed: format!("a level or directives: {error}"),
        suggestion: None,
    }))
}

/// Sends log events to standard error, which leaves standard output to what a command prints.
pub fn start(log: &LogConfig) -> Result<(), Failure> {
    let filter = filter(log).map_err(|error| Failure::Usage(format!("{KEY}: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr)
        // It would be told to standard error as well: on a full disk that panics, and ends the process.
        .log_internal_errors(false);
    let started = match log.format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::Runtime(format!("can't start logging: {error}")))
}

/// What others tell of themselves at `info` is for who works on them; who wants it can say so.
fn filter(log: &LogConfig) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::try_new(&log.level)?;
    for library in ["fjall", "lsm_tree"] {
        if matches!(log.level.trim(), "info") {
            filter = filter.add_directive(format!("{library}=warn").parse()?);
        }
    }
    Ok(filter)
}
