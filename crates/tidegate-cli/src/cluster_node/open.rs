use super::flags::JoinFlags;
use crate::config_loader;
use crate::failure::Failure;
use crate::settings_flags::SettingFlags;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{Cluster, ClusterError, ClusterFolder, JoinError, JoinWish, join};
use tidegate_server::file_mode;

/// The node of this role in the state folder, after it has joined if a flag says so. `None` if it is in none.
pub fn open(
    role: MemberRole,
    state_folder: Option<&Path>,
    flags: &JoinFlags,
) -> Result<Option<Arc<Cluster>>, Failure> {
    let folder = match (state_folder, &flags.join) {
        (Some(state_folder), _) => ClusterFolder::of(state_folder, role),
        (None, Some(_)) => return Err(no_folder()),
        (None, None) => return Ok(None),
    };
    if let (Some(target), false) = (&flags.join, folder.has_node()) {
        file_mode::close_new_files();
        let node = flags.node.clone().unwrap_or_else(|| default_name(role));
        let wish = JoinWish {
            target: target.clone(),
            role,
            node,
            host: flags.host.clone(),
            udp: flags.addresses.addresses(),
        };
        join(&folder, &wish).map_err(join_failure)?;
    }
    if !folder.has_node() {
        return Ok(None);
    }
    Cluster::open(folder).map(|cluster| Some(Arc::new(cluster))).map_err(node_failure)
}

/// The state folder that the settings name.
pub fn state_folder(
    file: Option<&Path>,
    settings: &SettingFlags,
) -> Result<Option<PathBuf>, Failure> {
    Ok(config_loader::load_lenient(file, settings)?.loaded.config.state_folder)
}

/// Name of the node of a role on this machine: its host name and the role.
pub fn default_name(role: MemberRole) -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || ".-_".contains(*c);
    let host: String = text.trim().chars().filter(allowed).take(50).collect();
    if host.is_empty() { role.name().to_owned() } else { format!("{host}-{role}") }
}

/// The failure of files of a cluster.
pub fn node_failure(error: ClusterError) -> Failure {
    match error {
        ClusterError::Name { .. } | ClusterError::Host { .. } => Failure::Usage(error.to_string()),
        error => Failure::runtime(error),
    }
}

/// Ends the process: its name belongs to another node, which must not be disturbed any longer.
pub fn exit_when_refused(error: String) {
    tracing::error!("{error}");
    eprintln!("tidegate: {error}");
    std::process::exit(1)
}

fn join_failure(error: JoinError) -> Failure {
    match error {
        JoinError::Files(error) => node_failure(error),
        error => Failure::runtime(error),
    }
}

fn no_folder() -> Failure {
    let missing =
        "--state-folder: nothing names one; a node of a cluster keeps its certificate there";
    Failure::Usage(missing.to_owned())
}
