use crate::failure::Failure;
use std::io::IsTerminal;
use tidegate_server::config::{ConfigError, ConfigErrors, Loaded, LogConfig, LogFormat, Origin};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

const KEY: &str = "log.level";

/// Checks log directives, which the configuration can't parse.
pub fn check(loaded: &Loaded) -> Result<(), ConfigErrors> {
    let Err(error) = filter(&loaded.config.log) else { return Ok(()) };
    let setting = loaded.origins.iter().find(|setting| setting.key == KEY);
    Err(ConfigErrors::from(ConfigError {
        field: KEY.to_owned(),
        origin: setting.map_or(Origin::Default, |setting| setting.origin.clone()),
        given: format!("{:?}", loaded.config.log.level),
        allowed: format!("a level or directives: {error}"),
        suggestion: None,
    }))
}

/// Starts logging to standard error; standard output is for the command's own output.
pub fn start(log: &LogConfig) -> Result<(), Failure> {
    let filter = filter(log).map_err(|error| Failure::Usage(format!("{KEY}: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr)
        // An internal error would be printed to standard error, which panics on a full disk.
        .log_internal_errors(false);
    let started = match log.format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::Runtime(format!("can't start logging: {error}")))
}

/// Log filter; at `info` the storage libraries log at `warn`.
fn filter(log: &LogConfig) -> Result<EnvFilter, ParseError> {
    let mut filter = EnvFilter::try_new(&log.level)?;
    for library in ["fjall", "lsm_tree"] {
        if matches!(log.level.trim(), "info") {
            filter = filter.add_directive(format!("{library}=warn").parse()?);
        }
    }
    Ok(filter)
}
