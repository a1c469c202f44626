use super::bubblewrap::Wrap;
use super::config::{LayerUse, Network, ProcessConfig};
use super::error::RunnerError;
use super::folder::WorkFolders;
use super::launch::{LaunchCommand, Probed};
use super::uids::UIDS;
use crate::tasks::execution::SandboxLayer;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Longest trial of a layer.
const TRY_WITHIN: Duration = Duration::from_secs(20);
/// Characters of a program's error in the reason.
const REASON_CHARS: usize = 300;

/// Layers in force, and a report about all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Detected {
    pub(super) rlimits: bool,
    /// Program of bubblewrap, when it works.
    pub(super) bubblewrap: Option<PathBuf>,
    pub(super) landlock: bool,
    pub(super) seccomp: bool,
    pub(super) uid: bool,
    pub(super) watcher: bool,
    /// Tasks with network reach no port of this process.
    pub(super) node_ports: bool,
    pub(super) list: Vec<SandboxLayer>,
}

// === impl Detected ===

impl Detected {
    /// Tries every layer.
    ///
    /// # Errors
    ///
    /// When the launcher does not run, or a required layer is missing.
    pub(super) async fn new(
        config: &ProcessConfig,
        launcher: &Path,
        folders: &WorkFolders,
    ) -> Result<Self, RunnerError> {
        let probed = probe(launcher).await?;
        let is_root = rustix::process::geteuid().is_root();
        let used = &config.layers;
        let mut layers = Self::default();
        let session = "a session of its own; all its processes get TERM, then KILL";
        layers.list.push(layer("session", true, session));
        let uid = match is_root {
            true => try_user(config.uid_first).await,
            false => Err("the worker is not root: tasks run as its user".to_owned()),
        };
        layers.uid = layers.decide("uid", used.uid, uid)?.is_some();
        let limits = match is_root && !layers.uid {
            true => "memory, CPU and files of each process; processes are not limited for root",
            false => "memory, processes, CPU and files",
        };
        let rlimits = layers.decide("rlimits", used.rlimits, Ok(limits.to_owned()))?;
        layers.rlimits = rlimits.is_some();
        let bubblewrap = match used.bubblewrap {
            LayerUse::Off => Err(String::new()),
            _ => try_bubblewrap(launcher, folders, config, is_root).await,
        };
        let text = "namespaces for processes, network, IPC and names; mounts read-only";
        let program = bubblewrap.clone().ok();
        let detail = bubblewrap.map(|program| format!("{}: {text}", program.display()));
        layers.bubblewrap = layers.decide("bubblewrap", used.bubblewrap, detail)?.and(program);
        let landlock = probed.landlock.map(|abi| format!("{abi}: reads and writes by path"));
        layers.landlock = layers.decide("landlock", used.landlock, landlock)?.is_some();
        let text = "local sockets alone unless the runtime has network; no mounts, tracing or keys";
        let seccomp = probed.seccomp.map(|()| text.to_owned());
        layers.seccomp = layers.decide("seccomp", used.seccomp, seccomp)?.is_some();
        let ports = match (used.landlock, layers.seccomp) {
            (LayerUse::Off, _) => Err("turned off".to_owned()),
            (_, false) => Err("needs seccomp".to_owned()),
            (_, true) => {
                probed.ports.map(|()| "refused to tasks of runtimes with network".to_owned())
            }
        };
        layers.node_ports = layers.decide("node_ports", used.landlock, ports)?.is_some();
        let text = "processes, memory, CPU and files of the whole task, deleted open files too";
        layers.watcher = layers.decide("watcher", used.watcher, Ok(text.to_owned()))?.is_some();
        Ok(layers)
    }

    /// Decides whether a layer is in force, and reports it with the reason.
    fn decide(
        &mut self,
        name: &'static str,
        used: LayerUse,
        found: Result<String, String>,
    ) -> Result<Option<()>, RunnerError> {
        let (active, detail) = match (used, found) {
            (LayerUse::Off, _) => (false, "turned off".to_owned()),
            (LayerUse::Require, Err(why)) => return Err(RunnerError::Layer { layer: name, why }),
            (_, Ok(detail)) => (true, detail),
            (_, Err(why)) => (false, why),
        };
        self.list.push(layer(name, active, &detail));
        Ok(active.then_some(()))
    }
}

fn layer(name: &str, active: bool, detail: &str) -> SandboxLayer {
    SandboxLayer { layer: name.to_owned(), active, detail: detail.to_owned() }
}

async fn probe(launcher: &Path) -> Result<Probed, RunnerError> {
    let wrong = |why| RunnerError::Launcher { launcher: launcher.to_owned(), why };
    let mut command = Command::new(launcher);
    command.args(["launch", LaunchCommand::Probe.name()]);
    let output = output(command).await.map_err(wrong)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| wrong("its answer is not that of a launcher".to_owned()))
}

async fn try_user(uid: u32) -> Result<String, String> {
    // Any program will do; that user may not be able to reach the launcher.
    let mut any = Command::new("true");
    any.uid(uid).gid(uid);
    output(any).await.map_err(|why| format!("this machine has no user {uid}: {why}"))?;
    Ok(format!("each running task has one of {uid} … {}", uid + UIDS - 1))
}

async fn try_bubblewrap(
    launcher: &Path,
    folders: &WorkFolders,
    config: &ProcessConfig,
    root: bool,
) -> Result<PathBuf, String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&paths)
        .map(|folder| folder.join("bwrap"))
        .find(|program| program.is_file())
        .ok_or("bwrap is not installed: the package is called bubblewrap")?;
    let folder = folders.create("probe", "", None).map_err(|error| error.to_string())?;
    let (readable, network) = (config.readable.as_slice(), Network::Deny);
    let wrap = Wrap { launcher, folder: &folder, readable, network, root };
    let mut command = Command::new(&program);
    command.args(wrap.args(LaunchCommand::Probe));
    output(command).await.map(|_| program)
}

/// Runs a command; the error has its standard error.
async fn output(mut command: Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = match timeout(TRY_WITHIN, command.output()).await {
        Ok(output) => output.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {TRY_WITHIN:?}")),
    };
    match output.status.success() {
        true => Ok(output),
        false => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let stderr: String = stderr.trim().chars().take(REASON_CHARS).collect();
            Err(format!("{}: {stderr}", output.status))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_layer_must_be_available_and_off_is_never_active() {
        let mut layers = Detected::default();
        let absent = || Err("no".to_owned());
        assert!(layers.decide("a", LayerUse::Require, absent()).is_err());
        assert_eq!(layers.decide("b", LayerUse::Auto, absent()).unwrap(), None);
        assert_eq!(layers.decide("c", LayerUse::Off, Ok("yes".to_owned())).unwrap(), None);
        assert_eq!(layers.decide("d", LayerUse::Require, Ok("yes".to_owned())).unwrap(), Some(()));
        let listed: Vec<_> = layers.list.iter().map(|one| (&*one.layer, one.active)).collect();
        assert_eq!(listed, [("b", false), ("c", false), ("d", true)]);
        assert_eq!(layers.list[0].detail, "no");
    }
}
