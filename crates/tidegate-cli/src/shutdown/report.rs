use std::process::ExitCode;
use tidegate_server::ingest::Flushed;

/// Logs the result of an ingest drain; returns the exit code.
pub fn flushed(result: Flushed) -> ExitCode {
    match result {
        Flushed::All => {
            tracing::info!("drained: all received records are stored");
            ExitCode::SUCCESS
        }
        Flushed::Cut => {
            tracing::error!(
                "drain cut off: not all received records are stored; senders repeat frames, lines are lost"
            );
            ExitCode::FAILURE
        }
    }
}
