use super::flags::{ClusterCommand, FolderFlag, InitFlags, TokenFlags};
use crate::cluster_node::{default_name, node_failure, state_folder};
use crate::failure::Failure;
use crate::settings_flags::SettingFlags;
use crate::terminal::{print, shell_path};
use std::time::Duration;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{
    ClusterError, ClusterFolder, InitWish, NodeRecord, TokenUse, init, new_token,
};
use tidegate_server::file_mode;

/// `tidegate cluster …`.
pub fn run(command: &ClusterCommand) -> Result<(), Failure> {
    file_mode::close_new_files();
    match command {
        ClusterCommand::Init(flags) => make(flags),
        ClusterCommand::Token(flags) => token(flags),
    }
}

fn make(flags: &InitFlags) -> Result<(), Failure> {
    let folder = folder(&flags.folder)?;
    let wish = InitWish {
        cell: flags.cell.clone(),
        node: flags.node.clone().unwrap_or_else(|| default_name(MemberRole::Manager)),
        host: flags.host.clone(),
        workers_port: flags.port,
        udp: flags.udp.addresses(),
    };
    let node = init(&folder, &wish).map_err(node_failure)?;
    let valid = Duration::from_secs(flags.valid.seconds);
    let join = |role| command(&folder, &node, role, TokenUse::UntilExpiry, valid);
    let here = match &flags.folder.state_folder {
        Some(folder) => format!("tidegate manager --state-folder {}", shell_path(folder)),
        None => "tidegate manager".to_owned(),
    };
    print(&format!(
        "cell {}, manager {}: authority, certificate and UDP key are in {}\n\n\
         Start the manager here:\n  {here}\n\n\
         Then on each further machine, within {} s:\n  {}\n  {}\n  {}\n\n\
         A further manager needs the same PostgreSQL as this one (--task-store). Later nodes need a new token:\n  \
         tidegate cluster token worker\n",
        node.cell,
        node.node,
        folder.path().display(),
        flags.valid.seconds,
        join(MemberRole::Worker).map_err(node_failure)?,
        join(MemberRole::Gate).map_err(node_failure)?,
        join(MemberRole::Manager).map_err(node_failure)?,
    ));
    Ok(())
}

fn token(flags: &TokenFlags) -> Result<(), Failure> {
    let folder = folder(&flags.folder)?;
    if !folder.has_node() {
        let path = folder.path().display();
        let missing = format!("{path} has no node; make a cluster with `tidegate cluster init`");
        return Err(Failure::Runtime(missing));
    }
    let node = folder.node().map_err(node_failure)?;
    let uses = if flags.once { TokenUse::Once } else { TokenUse::UntilExpiry };
    let valid = Duration::from_secs(flags.valid.seconds);
    let command = command(&folder, &node, flags.role, uses, valid).map_err(node_failure)?;
    print(&format!("{command}\n"));
    Ok(())
}

/// The command with which a node of a role joins, with a new token.
fn command(
    folder: &ClusterFolder,
    node: &NodeRecord,
    role: MemberRole,
    uses: TokenUse,
    valid: Duration,
) -> Result<String, ClusterError> {
    let token = new_token(folder, role, uses, valid)?;
    let manager = node.manager.as_ref().map_or("", |manager| manager.workers.as_str());
    Ok(format!("tidegate {role} --join {token}@{manager}"))
}

fn folder(flag: &FolderFlag) -> Result<ClusterFolder, Failure> {
    let settings = flag.state_folder.iter().fold(SettingFlags::default(), |settings, folder| {
        settings.with("--state-folder", "state_folder", &folder.to_string_lossy())
    });
    match state_folder(None, &settings)? {
        Some(folder) => Ok(ClusterFolder::of(&folder, MemberRole::Manager)),
        None => {
            let missing = "--state-folder: nothing names one; give a folder for the cluster's keys";
            Err(Failure::Usage(missing.to_owned()))
        }
    }
}
