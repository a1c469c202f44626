use crate::failure::Failure;
use std::process::ExitCode;
use tidegate_server::tasks::executor::{Drained, ExecutorConfigError};

/// Refuses flags outside of their range, all at once.
pub fn refuse(errors: &[ExecutorConfigError]) -> Result<(), Failure> {
    let text: Vec<_> = errors.iter().map(|error| format!("\n  --{error}")).collect();
    match text.len() {
        0 => Ok(()),
        1 => Err(Failure::Usage(format!("1 error in the flags:{}", text.concat()))),
        many => Err(Failure::Usage(format!("{many} errors in the flags:{}", text.concat()))),
    }
}

/// Logs the result of the drain; returns the exit code.
pub fn report(drained: Drained) -> ExitCode {
    match drained {
        Drained { stopped: 0, .. } => {
            tracing::info!("drained: all executions have finished");
            ExitCode::SUCCESS
        }
        Drained { stopped, left: 0 } => {
            tracing::warn!(stopped, "grace time exceeded: running executions were stopped");
            ExitCode::FAILURE
        }
        Drained { stopped, left } => {
            tracing::error!(stopped, left, "executions did not stop after they were killed");
            ExitCode::FAILURE
        }
    }
}
