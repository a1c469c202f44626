use crate::failure::Failure;
use tidegate_server::config::{LogConfig, LogFormat};
use tracing_subscriber::EnvFilter;

/// The filter that the configuration asks for.
pub fn filter(log: &LogConfig) -> Result<EnvFilter, Failure> {
    EnvFilter::try_new(&log.level).map_err(|error| {
        Failure::Usage(format!("1 mistake in the configuration:\n  log.level: {error}"))
    })
}

/// Sends log events to standard error, which leaves standard output to what a command prints.
pub fn start(log: &LogConfig) -> Result<(), Failure> {
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter(log)?).with_writer(std::io::stderr);
    let started = match log.format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Failure::Runtime(format!("can't start logging: {error}")))
}
