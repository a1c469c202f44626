use super::flags::{Kind, WorkerFlags};
use crate::config_loader;
use crate::failure::Failure;
use crate::settings_flags::SettingFlags;
use std::time::Duration;
use tidegate_server::tasks::executor::{
    ExecutorConfig, HttpRunner, MockRunner, Runner, TargetError,
};
use tidegate_server::tasks::sandbox::{ProcessConfig, ProcessRunner, RuntimeConfig};
use tokio::runtime::Builder;

/// Executor settings of the flags.
pub fn config(flags: &WorkerFlags) -> ExecutorConfig {
    let id = flags.executor_id.clone().unwrap_or_else(|| match flags.listen().port() {
        _ if flags.manager.is_some() => host_name(),
        // The port is not known yet; a name that changes is better than one that several executors have.
        0 => format!("executor-p{}", std::process::id()),
        port => format!("executor-{port}"),
    });
    ExecutorConfig {
        timeout_default: Duration::from_millis(flags.timeout_ms),
        output_bytes_max: flags.output_bytes,
        ..ExecutorConfig::new(id, flags.max_concurrent)
    }
}

/// Name of this machine, as a worker of it may have it.
fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
    let name: String = text.trim().chars().filter(allowed).take(64).collect();
    if name.is_empty() { "worker".to_owned() } else { name }
}

/// Runner of the kind that the flags name.
pub fn runner(flags: &WorkerFlags) -> Result<Runner, Failure> {
    let runtimes = flags.runtimes.clone();
    match flags.executor {
        Kind::Process => process_runner(flags),
        Kind::Mock => {
            let takes = Duration::from_millis(flags.mock.mock_ms);
            Ok(Runner::Mock(MockRunner::new(takes, runtimes)))
        }
        Kind::Http => {
            let target = flags.http.target.as_deref().unwrap_or_default();
            match HttpRunner::new(target, runtimes) {
                Ok(http) => Ok(Runner::Http(Box::new(http))),
                Err(TargetError::Url(error)) => Err(Failure::Usage(format!("--{error}"))),
                Err(error) => Err(Failure::Runtime(format!("--target {target}: {error}"))),
            }
        }
    }
}

/// Starts the process runner, which tests every sandbox layer and runtime.
fn process_runner(flags: &WorkerFlags) -> Result<Runner, Failure> {
    let loaded = config_loader::load(flags.process.config.as_deref(), &SettingFlags::default())?;
    let declared = &loaded.loaded.config.tasks;
    let mut config = ProcessConfig {
        // Of a gateway on this machine, whose admin port may need no token.
        refused_ports: declared.node_ports.clone(),
        unguarded_network: declared.unguarded_network,
        runtimes: declared.runtimes.iter().map(RuntimeConfig::from).collect(),
        ..ProcessConfig::default()
    };
    let folder = flags.process.work_folder.as_ref().or(declared.work_folder.as_ref());
    if let Some(folder) = folder {
        config.folder.clone_from(folder);
    }
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(error.to_string()))?;
    let runner = runtime.block_on(ProcessRunner::new(config));
    let runner = runner.map_err(|error| Failure::Runtime(error.to_string()))?;
    let missing = flags.runtimes.iter().find(|name| !runner.runtimes().contains(name));
    match missing {
        Some(name) => Err(Failure::Usage(format!(
            "--runtime {name}: not available; this machine has {}; declare others as [[runtime]] in the configuration",
            runner.runtimes().join(", ")
        ))),
        None => Ok(Runner::Process(Box::new(runner))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: WorkerFlags,
    }

    fn parsed(line: &str) -> WorkerFlags {
        Line::parse_from(line.split_whitespace()).flags
    }

    #[test]
    fn every_flag_counts() {
        let flags = parsed(
            "worker --executor mock --max-concurrent 7 --listen 127.0.0.1:1 --executor-id a \
             --runtime x --runtime y --timeout-ms 5 --output-bytes 6 --grace-ms 8 --mock-ms 9",
        );
        let config = config(&flags);
        assert_eq!((config.id.as_str(), config.max_concurrent), ("a", 7));
        assert_eq!(config.timeout_default, Duration::from_millis(5));
        assert_eq!(config.output_bytes_max, 6);
        assert_eq!((flags.grace_ms, flags.listen().port()), (8, 1));
        let runner = runner(&flags).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((runner.kind(), runner.runtimes().len()), ("mock", 2));
        assert_eq!(flags.mock.mock_ms, 9);
    }

    #[test]
    fn the_default_name_has_the_port() {
        assert_eq!(config(&parsed("worker --listen 127.0.0.1:99")).id, "executor-99");
        assert_ne!(config(&parsed("worker --listen 127.0.0.1:0")).id, "executor-0");
    }
}
