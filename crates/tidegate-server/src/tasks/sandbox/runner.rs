use super::access_rules::AccessRules;
use super::bubblewrap::{CODE, HOME, SYSTEM, Wrap};
use super::config::{Network, ProcessConfig, RuntimeConfig};
use super::ending::Facts;
use super::error::RunnerError;
use super::execution::Execution;
use super::folder::{WorkFolder, WorkFolders};
use super::launch::{LaunchCommand, Limits, Plan, Process, all_processes};
use super::layers::Detected;
use super::orphans;
use super::own_ports::own_ports;
use super::runtime::Runtime;
use super::uids::TaskUser;
use crate::file_mode;
use crate::tasks::execution::{OutputSink, ProgressSink, SandboxLayer, StopSignal, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate::task::{EndReason, Ending, TaskId, TaskOutcome};
use tokio::process::Command;
use tokio::time::Instant;

/// Processes that the kernel's limit allows beyond the watcher's: the watcher names the exceeded limit, and the
/// kernel's holds when the watcher is too slow.
const PROCESSES_BEYOND: u64 = 16;
/// Processes that the worker's own user may start elsewhere meanwhile, when tasks run as that user.
const PROCESSES_ELSEWHERE: u64 = 256;
/// Smallest memory limit: with less, no runtime starts.
const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Longest trial of a runtime.
const PROBE_WITHIN: Duration = Duration::from_secs(20);
/// Output limit of a runtime's trial.
const PROBE_OUTPUT_BYTES: usize = 64 << 10;

/// Runner of tasks as processes, in a sandbox of the layers that this machine has.
#[derive(Debug)]
pub struct ProcessRunner {
    config: ProcessConfig,
    launcher: PathBuf,
    layers: Detected,
    runtimes: BTreeMap<String, Runtime>,
    names: Vec<String>,
    folders: Arc<WorkFolders>,
}

/// Work folder and user of a running execution.
struct Resources {
    folder: WorkFolder,
    user: Option<TaskUser>,
    /// TCP ports that the task must not connect to.
    refused_ports: BTreeSet<u16>,
}

/// Guard that releases the resources, also when the execution's future is dropped.
struct ResourceGuard(Option<Resources>);

// === impl ProcessRunner ===

impl ProcessRunner {
    /// Finds layers and runtimes by trying each, which takes about 1 s.
    ///
    /// # Errors
    ///
    /// When there is no launcher, a required layer is missing, no work folder can be created, or a declared
    /// runtime does not run. A missing `python` or `sh` is no error.
    pub async fn new(config: ProcessConfig) -> Result<Self, RunnerError> {
        let launcher = match &config.launcher {
            Some(launcher) => launcher.clone(),
            None => std::env::current_exe().map_err(|error| RunnerError::Launcher {
                launcher: PathBuf::new(),
                why: error.to_string(),
            })?,
        };
        let folder = config.folder.clone();
        let folders =
            WorkFolders::open(&folder).map_err(|source| RunnerError::Folder { folder, source })?;
        let layers = Detected::new(&config, &launcher, &folders).await?;
        refuse_unguarded(&config, &layers)?;
        let folders = Arc::new(folders);
        let declared = config.runtimes.clone();
        let (runtimes, names) = (BTreeMap::new(), Vec::new());
        let mut runner = Self { config, launcher, layers, runtimes, names, folders };
        for config in &declared {
            let found = runner.find(config).await;
            let runtime =
                found.map_err(|why| RunnerError::Runtime { name: config.name.clone(), why })?;
            runner.runtimes.insert(config.name.clone(), runtime);
        }
        let python = RuntimeConfig { command: "python".into(), ..RuntimeConfig::python() };
        for config in [RuntimeConfig::python(), python, RuntimeConfig::sh()] {
            if runner.runtimes.contains_key(&config.name) {
                continue;
            }
            match runner.find(&config).await {
                Ok(runtime) => drop(runner.runtimes.insert(config.name.clone(), runtime)),
                Err(why) => tracing::info!(runtime = config.name, why, "runtime not found"),
            }
        }
        runner.names = runner.runtimes.keys().cloned().collect();
        Ok(runner)
    }

    /// Layers of the sandbox, in force or not, with the reason.
    #[must_use]
    pub fn layers(&self) -> Vec<SandboxLayer> {
        self.layers.list.clone()
    }

    /// Names of the runtimes.
    #[must_use]
    pub fn runtimes(&self) -> &[String] {
        &self.names
    }

    /// Runs an execution until it exits, is stopped, times out or exceeds a limit. On return no process of it is
    /// left, and its work folder is moved aside for removal.
    ///
    /// Dropped early, all of its processes are killed in the background.
    pub async fn run(
        &self,
        work: &Work,
        sink: &OutputSink,
        progress: &ProgressSink,
        stop: StopSignal,
    ) -> Ending {
        let started = Instant::now();
        let ending = match self.runtimes.get(&work.runtime) {
            Some(runtime) => self.run_on(runtime, work, sink, progress, stop).await,
            None => {
                let known = self.runtimes().join(", ");
                let message = format!("no runtime {:?}; available: {known}", work.runtime);
                Ending::new(TaskOutcome::Failed, EndReason::NotStarted).because(message)
            }
        };
        let ran_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ending { ran_ms, ..ending }
    }

    async fn run_on(
        &self,
        runtime: &Runtime,
        work: &Work,
        sink: &OutputSink,
        progress: &ProgressSink,
        stop: StopSignal,
    ) -> Ending {
        let deadline = Instant::now() + work.timeout.min(runtime.config.timeout_max);
        let not_started = |error: io::Error| {
            Ending::new(TaskOutcome::Failed, EndReason::NotStarted).because(error.to_string())
        };
        let resources = match self.acquire(runtime, work).await {
            Ok(resources) => resources,
            Err(error) => return not_started(error),
        };
        let plan = self.plan(runtime, work, &resources);
        let rules = AccessRules {
            network: plan.network,
            writable: plan.writable.clone(),
            confined: self.layers.landlock || self.layers.bubblewrap.is_some(),
        };
        let command = self.command(runtime, &resources);
        let guard = ResourceGuard(Some(resources));
        let started = match plan.line() {
            Ok(line) => Execution::start(command, &line, rules, deadline).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(execution) => {
                let facts = execution.run(sink, progress, stop, self.config.grace).await;
                guard.release(facts).await.ending()
            }
            Err(error) => not_started(error),
        }
    }

    /// Acquires work folder and user of an execution.
    async fn acquire(&self, runtime: &Runtime, work: &Work) -> io::Result<Resources> {
        let (folders, has_user) = (self.folders.clone(), self.layers.uid);
        let (uid_first, file, code) =
            (self.config.uid_first, runtime.file_name(), work.code.clone());
        let guards_ports = runtime.config.network == Network::Allow && self.layers.node_ports;
        let mut refused_ports = match guards_ports {
            true => self.config.refused_ports.clone(),
            false => BTreeSet::new(),
        };
        let acquired = tokio::task::spawn_blocking(move || {
            if guards_ports {
                refused_ports.extend(own_ports()?);
            }
            let user = match has_user {
                true => Some(TaskUser::take(uid_first).ok_or_else(|| {
                    io::Error::other("all users for tasks are in use: run fewer tasks at one time")
                })?),
                false => None,
            };
            let folder = folders.create(&file, &code, user.as_ref())?;
            Ok(Resources { folder, user, refused_ports })
        });
        acquired.await.map_err(io::Error::other)?
    }

    fn plan(&self, runtime: &Runtime, work: &Work, resources: &Resources) -> Plan {
        let wrapped = self.layers.bubblewrap.is_some();
        let file = match wrapped {
            true => Path::new(CODE).join(runtime.file_name()),
            false => resources.folder.code.clone(),
        };
        let writable: Vec<PathBuf> = match wrapped {
            true => [HOME, "/tmp", "/dev/shm"].map(PathBuf::from).to_vec(),
            false => resources.folder.writable().to_vec(),
        };
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(self.config.readable.iter().chain(&runtime.readable).cloned());
        readable.extend(file.parent().map(Path::to_owned));
        let (home, temporary) = (&writable[0], &writable[1]);
        let mut env = BTreeMap::from([
            ("PATH".to_owned(), runtime.path()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("HOME".to_owned(), home.to_string_lossy().into_owned()),
            ("TMPDIR".to_owned(), temporary.to_string_lossy().into_owned()),
        ]);
        env.extend(runtime.config.env.clone());
        env.extend(work.env.clone());
        let mark = resources.folder.path().to_string_lossy().into_owned();
        env.insert(orphans::MARK.to_owned(), mark);
        Plan {
            program: runtime.program.clone(),
            args: runtime.args(&file, &work.args),
            env,
            folder: home.clone(),
            writable,
            readable,
            umask: file_mode::inherited(),
            uid: resources.user.as_ref().map(|user| user.uid),
            network: runtime.config.network,
            refused_ports: resources.refused_ports.clone(),
            limits: limits(&runtime.config, resources.user.is_some()),
            rlimits: self.layers.rlimits,
            landlock: self.layers.landlock,
            seccomp: self.layers.seccomp,
            watcher: self.layers.watcher,
            leave_ms: u64::try_from(self.config.leave_within.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Command that starts the supervisor, in a process group of its own: what a terminal sends to the group of
    /// the worker, such as SIGHUP when it closes, is for the worker to decide.
    fn command(&self, runtime: &Runtime, resources: &Resources) -> Command {
        let Some(bubblewrap) = &self.layers.bubblewrap else {
            let mut command = Command::new(&self.launcher);
            command.args(["launch", LaunchCommand::Supervise.name()]).process_group(0);
            return command;
        };
        let mut readable = self.config.readable.clone();
        readable.extend(runtime.readable.iter().cloned());
        let wrap = Wrap {
            launcher: &self.launcher,
            folder: &resources.folder,
            readable: &readable,
            network: runtime.config.network,
            root: rustix::process::geteuid().is_root(),
        };
        let mut command = Command::new(bubblewrap);
        command.args(wrap.args(LaunchCommand::Supervise)).process_group(0);
        command
    }

    /// The runtime's first program that runs in the sandbox.
    async fn find(&self, config: &RuntimeConfig) -> Result<Runtime, String> {
        let mut why = format!("{} is not in PATH", config.command.display());
        for runtime in Runtime::candidates(config).await {
            match self.try_runtime(&runtime).await {
                Ok(()) => return Ok(runtime),
                Err(wrong) => why = format!("{}: {wrong}", runtime.program.display()),
            }
        }
        Err(why)
    }

    /// Tries a runtime with empty code. A declared runtime may fail on it, as long as it starts.
    async fn try_runtime(&self, runtime: &Runtime) -> Result<(), String> {
        let work = Work {
            key: TaskId::new("probe").map_err(|error| error.to_string())?.attempt(1),
            runtime: runtime.config.name.clone(),
            code: "\n".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            timeout: PROBE_WITHIN,
        };
        let sink = OutputSink::new(PROBE_OUTPUT_BYTES);
        let (_switch, stop) = StopSignal::new();
        let ending = self.run_on(runtime, &work, &sink, &ProgressSink::new(), stop).await;
        let built_in = ["python", "sh"].contains(&runtime.config.name.as_str());
        match ending.reason {
            EndReason::NotStarted => Err(ending.message),
            _ if built_in && ending.outcome != TaskOutcome::Succeeded => {
                Err(format!("{}: {}", ending.reason, ending.message))
            }
            _ => Ok(()),
        }
    }
}

// === impl ResourceGuard ===

impl ResourceGuard {
    /// Releases the resources after the end of the execution.
    async fn release(mut self, mut facts: Facts) -> Facts {
        let Some(resources) = self.0.take() else { return facts };
        let supervisor_lost = facts.ended.is_none();
        let released = tokio::task::spawn_blocking(move || resources.release(supervisor_lost));
        facts.orphans = released.await.unwrap_or(0);
        facts
    }
}

impl Drop for ResourceGuard {
    fn drop(&mut self) {
        // On a thread of its own: it may take a while, and this may be an io thread.
        if let Some(resources) = self.0.take() {
            thread::spawn(move || resources.release(true));
        }
    }
}

// === impl Resources ===

impl Resources {
    /// Releases the user last: no other task may get it while a process of it lives. Returns the orphans killed.
    fn release(self, supervisor_lost: bool) -> u32 {
        let uid = self.user.as_ref().map(|user| user.uid);
        let orphans = match supervisor_lost {
            true => orphans::kill(uid, self.folder.path()),
            false => 0,
        };
        drop(self.folder);
        drop(self.user);
        orphans
    }
}

/// Refuses runtimes whose tasks would reach the ports of this process, unless that is configured.
fn refuse_unguarded(config: &ProcessConfig, layers: &Detected) -> Result<(), RunnerError> {
    let with_network = config.runtimes.iter().find(|it| it.network == Network::Allow);
    let Some(runtime) = with_network.filter(|_| !layers.node_ports) else { return Ok(()) };
    let layer = layers.list.iter().find(|layer| layer.layer == "node_ports");
    let why = layer.map(|layer| layer.detail.clone()).unwrap_or_default();
    if !config.unguarded_network {
        return Err(RunnerError::Unguarded { name: runtime.name.clone(), why });
    }
    let runtime = &runtime.name;
    tracing::warn!(runtime, why, "tasks with network reach the ports of this node: use operators");
    Ok(())
}

fn limits(runtime: &RuntimeConfig, own_user: bool) -> Limits {
    let beyond = match own_user {
        true => PROCESSES_BEYOND,
        // The kernel counts all processes of the user.
        false => PROCESSES_BEYOND + PROCESSES_ELSEWHERE + processes_of_this_user(),
    };
    Limits {
        memory_bytes: runtime.memory_bytes_max.max(MEMORY_BYTES_MIN),
        processes: runtime.processes_max,
        // Well beyond the limit: a task that can't fork falls apart, and the watcher would then count too few
        // processes to name the limit.
        processes_of_user: u64::from(runtime.processes_max) * 4 + beyond,
        cpu_s: runtime.cpu_s_max.max(1),
        file_bytes: runtime.file_bytes_max,
        files: runtime.files_max,
    }
}

fn processes_of_this_user() -> u64 {
    let user = rustix::process::geteuid().as_raw();
    let own = all_processes().filter(|(_, uid)| *uid == user);
    own.filter_map(|(pid, _)| Process::read(pid)).map(|process| u64::from(process.threads)).sum()
}
