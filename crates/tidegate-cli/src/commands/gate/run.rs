use super::flags::GateFlags;
use crate::cluster_node;
use crate::failure::Failure;
use crate::node_process::{self, NodeRole};
use std::process::ExitCode;
use tidegate::membership::MemberRole;

/// Runs `tidegate gate` until a signal ends it.
pub fn run(flags: &GateFlags) -> Result<ExitCode, Failure> {
    let settings = flags.managers.iter().fold(flags.settings.clone(), |settings, manager| {
        settings.with("--manager", "upstream", &url(manager))
    });
    let file = flags.file.path.as_deref();
    let folder = cluster_node::state_folder(file, &settings)?;
    let cluster = cluster_node::open(MemberRole::Gate, folder.as_deref(), &flags.join)?;
    let joined = cluster.as_ref().and_then(|cluster| cluster.node().manager.clone());
    let has_upstream = settings.typed().iter().any(|typed| typed.key == "upstream");
    let settings = match joined.and_then(|manager| manager.clients) {
        Some(clients) if !has_upstream && file.is_none() => {
            settings.with("the cluster", "upstream", &clients)
        }
        _ => settings,
    };
    if settings.typed().iter().all(|typed| typed.key != "upstream") && flags.file.path.is_none() {
        let missing = "--manager: nothing was given; name the client address of a manager, such as 127.0.0.1:8000";
        return Err(Failure::Usage(missing.to_owned()));
    }
    node_process::run_in(NodeRole::Gate, file, &settings, cluster)
}

/// An address without a scheme is one of plain HTTP.
fn url(manager: &str) -> String {
    if manager.contains("://") { manager.to_owned() } else { format!("http://{manager}") }
}
