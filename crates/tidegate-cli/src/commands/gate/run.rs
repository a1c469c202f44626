use super::flags::GateFlags;
use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;

/// Runs `tidegate gate` until a signal ends it.
pub fn run(flags: &GateFlags) -> Result<ExitCode, Failure> {
    let settings = flags.managers.iter().fold(flags.settings.clone(), |settings, manager| {
        settings.with("--manager", "upstream", &url(manager))
    });
    if settings.typed().iter().all(|typed| typed.key != "upstream") && flags.file.path.is_none() {
        let missing = "--manager: nothing was given; name the client address of a manager, such as 127.0.0.1:8000";
        return Err(Failure::Usage(missing.to_owned()));
    }
    node_process::run(NodeRole::Gate, flags.file.path.as_deref(), &settings)
}

/// An address without a scheme is one of plain HTTP.
fn url(manager: &str) -> String {
    if manager.contains("://") { manager.to_owned() } else { format!("http://{manager}") }
}
