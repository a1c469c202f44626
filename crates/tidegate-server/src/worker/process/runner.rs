use super::bubblewrap::{CODE, HOME, SYSTEM, Wrap};
use super::config::{ProcessConfig, RuntimeConfig};
use super::ending::Facts;
use super::execution::Execution;
use super::folder::{WorkFolder, WorkFolders};
use super::launch::{Limits, Plan, Process, Stage, everybody};
use super::layers::Detected;
use super::runtime::Runtime;
use super::strays;
use super::uids::TaskUser;
use crate::worker::{OutputSink, SandboxLayer, StopSignal, Work};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate::task::{EndReason, Ending, Outcome, TaskId};
use tokio::process::Command;
use tokio::time::Instant;

/// What the kernel allows beyond what the watcher does: it is the watcher that names the limit, and the kernel is
/// there for when that is too slow.
const PROCESSES_BEYOND: u64 = 16;
/// When the task's user is the worker's own: how many processes that user may start elsewhere in the meantime.
const PROCESSES_ELSEWHERE: u64 = 256;
/// With less, no runtime starts.
const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// How long a runtime may take to do nothing.
const PROBE_WITHIN: Duration = Duration::from_secs(20);
/// How much output a runtime may write while it does nothing.
const PROBE_OUTPUT_BYTES: usize = 64 << 10;

/// Runs tasks as processes, in a sandbox of the layers that this machine has.
#[derive(Debug)]
pub struct ProcessRunner {
    config: ProcessConfig,
    launcher: PathBuf,
    layers: Detected,
    runtimes: BTreeMap<String, Runtime>,
    names: Vec<String>,
    folders: Arc<WorkFolders>,
}

/// The process executor can't start.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The launcher does not run.
    #[error("{} can't be the launcher: {why}; it must be a tidegate of this version", launcher.display())]
    Launcher {
        /// The program.
        launcher: PathBuf,
        /// What it did.
        why: String,
    },
    /// A layer that is required is not there.
    #[error("the layer {layer} is required, but not there: {why}; install it, or don't require it")]
    Layer {
        /// Its name.
        layer: &'static str,
        /// Why it is not there.
        why: String,
    },
    /// The work folders can't be made.
    #[error("no work folders can be made in {}: {source}; choose a folder of this user", folder.display())]
    Folder {
        /// Where.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A runtime that was declared does not run.
    #[error("the runtime {name} does not run: {why}; correct its command, or leave it out")]
    Runtime {
        /// Its name.
        name: String,
        /// What happened.
        why: String,
    },
}

/// What an execution has while it runs.
struct Held {
    folder: WorkFolder,
    user: Option<TaskUser>,
}

/// Gives it back also when whoever waited for the execution does not any more.
struct Holding(Option<Held>);

// === impl ProcessRunner ===

impl ProcessRunner {
    /// Looks for layers and runtimes by trying each, which takes about a second.
    ///
    /// # Errors
    ///
    /// When there is no launcher, a layer that is required is missing, no work folder can be made, or a declared
    /// runtime does not run. That `python` or `sh` are missing is no error.
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
                Err(why) => tracing::info!(runtime = config.name, why, "not found"),
            }
        }
        runner.names = runner.runtimes.keys().cloned().collect();
        Ok(runner)
    }

    /// What stands between a task and the machine, in force or not, with the reason.
    #[must_use]
    pub fn layers(&self) -> Vec<SandboxLayer> {
        self.layers.list.clone()
    }

    /// What can be run, by name.
    #[must_use]
    pub fn runtimes(&self) -> &[String] {
        &self.names
    }

    /// Runs it to its end, or ends it: when it is told to, when its time is over, or when it passes a limit. When
    /// this returns, no process of it is left and its work folder is gone.
    ///
    /// Dropped before, everything of it is killed in the background.
    pub async fn run(&self, work: &Work, sink: &OutputSink, stop: StopSignal) -> Ending {
        let started = Instant::now();
        let ending = match self.runtimes.get(&work.runtime) {
            Some(runtime) => self.run_on(runtime, work, sink, stop).await,
            None => {
                let known = self.runtimes().join(", ");
                let message = format!("no runtime {:?} here: there is {known}", work.runtime);
                Ending::new(Outcome::Failed, EndReason::NotStarted).because(message)
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
        stop: StopSignal,
    ) -> Ending {
        let network = runtime.config.network;
        let deadline = Instant::now() + work.timeout.min(runtime.config.timeout_max);
        let not_started = |error: io::Error| {
            Ending::new(Outcome::Failed, EndReason::NotStarted).because(error.to_string())
        };
        let held = match self.hold(runtime, work).await {
            Ok(held) => held,
            Err(error) => return not_started(error),
        };
        let plan = self.plan(runtime, work, &held);
        let command = self.command(runtime, &held);
        let holding = Holding(Some(held));
        let started = match plan.line() {
            Ok(line) => Execution::start(command, &line, network, deadline).await,
            Err(error) => Err(error),
        };
        match started {
            Ok(execution) => {
                let facts = execution.run(sink, stop, self.config.grace).await;
                holding.give_back(facts).await.ending()
            }
            Err(error) => not_started(error),
        }
    }

    /// The folder and the user of an execution.
    async fn hold(&self, runtime: &Runtime, work: &Work) -> io::Result<Held> {
        let (folders, has_user) = (self.folders.clone(), self.layers.uid);
        let (uid_first, file, code) =
            (self.config.uid_first, runtime.file_name(), work.code.clone());
        let made = tokio::task::spawn_blocking(move || {
            let user = match has_user {
                true => Some(TaskUser::take(uid_first).ok_or_else(|| {
                    io::Error::other("every user that tasks run as is taken: run fewer at one time")
                })?),
                false => None,
            };
            let folder = folders.make(&file, &code, user.as_ref())?;
            Ok(Held { folder, user })
        });
        made.await.map_err(io::Error::other)?
    }

    fn plan(&self, runtime: &Runtime, work: &Work, held: &Held) -> Plan {
        let wrapped = self.layers.bubblewrap.is_some();
        let file = match wrapped {
            true => Path::new(CODE).join(runtime.file_name()),
            false => held.folder.code.clone(),
        };
        let writable: Vec<PathBuf> = match wrapped {
            true => [HOME, "/tmp", "/dev/shm"].map(PathBuf::from).to_vec(),
            false => held.folder.writable().to_vec(),
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
        let mark = held.folder.path().to_string_lossy().into_owned();
        env.insert(strays::MARK.to_owned(), mark);
        Plan {
            program: runtime.program.clone(),
            args: runtime.args(&file, &work.args),
            env,
            folder: home.clone(),
            writable,
            readable,
            uid: held.user.as_ref().map(|user| user.uid),
            network: runtime.config.network,
            limits: limits(&runtime.config, held.user.is_some()),
            rlimits: self.layers.rlimits,
            landlock: self.layers.landlock,
            seccomp: self.layers.seccomp,
            watcher: self.layers.watcher,
            leave_ms: u64::try_from(self.config.leave_within.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// What starts the supervisor.
    fn command(&self, runtime: &Runtime, held: &Held) -> Command {
        let Some(bubblewrap) = &self.layers.bubblewrap else {
            let mut command = Command::new(&self.launcher);
            command.args(["launch", Stage::Supervise.name()]);
            return command;
        };
        let mut readable = self.config.readable.clone();
        readable.extend(runtime.readable.iter().cloned());
        let wrap = Wrap {
            launcher: &self.launcher,
            folder: &held.folder,
            readable: &readable,
            network: runtime.config.network,
            root: rustix::process::geteuid().is_root(),
        };
        let mut command = Command::new(bubblewrap);
        command.args(wrap.args(Stage::Supervise));
        command
    }

    /// The first program that the runtime could mean and that runs in the sandbox.
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

    /// Starts it with nothing to do. What is not one of ours may find that wrong, as long as it starts.
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
        let ending = self.run_on(runtime, &work, &sink, stop).await;
        let ours = ["python", "sh"].contains(&runtime.config.name.as_str());
        match ending.reason {
            EndReason::NotStarted => Err(ending.message),
            _ if ours && ending.outcome != Outcome::Succeeded => {
                Err(format!("{}: {}", ending.reason, ending.message))
            }
            _ => Ok(()),
        }
    }
}

// === impl Holding ===

impl Holding {
    /// Removes what is left of the execution.
    async fn give_back(mut self, mut facts: Facts) -> Facts {
        let Some(held) = self.0.take() else { return facts };
        let lost = facts.ended.is_none();
        let given = tokio::task::spawn_blocking(move || held.give_back(lost)).await;
        facts.strays = given.unwrap_or(0);
        facts
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // Not here: it may take a while, and this may be a thread that others wait for.
        if let Some(held) = self.0.take() {
            thread::spawn(move || held.give_back(true));
        }
    }
}

// === impl Held ===

impl Held {
    /// The user last: nobody may get it while a process of it lives.
    fn give_back(self, lost: bool) -> u32 {
        let uid = self.user.as_ref().map(|user| user.uid);
        let strays = match lost {
            true => strays::kill(uid, self.folder.path()),
            false => 0,
        };
        drop(self.folder);
        drop(self.user);
        strays
    }
}

fn limits(runtime: &RuntimeConfig, own_user: bool) -> Limits {
    let beyond = match own_user {
        true => PROCESSES_BEYOND,
        // The kernel counts all of the user's, wherever they run.
        false => PROCESSES_BEYOND + PROCESSES_ELSEWHERE + processes_of_this_user(),
    };
    Limits {
        memory_bytes: runtime.memory_bytes_max.max(MEMORY_BYTES_MIN),
        processes: runtime.processes_max,
        // Well beyond the limit: a family that can't fork falls apart, and whoever counts it a moment later finds
        // too few to name.
        processes_of_user: u64::from(runtime.processes_max) * 4 + beyond,
        cpu_s: runtime.cpu_s_max.max(1),
        file_bytes: runtime.file_bytes_max,
        files: runtime.files_max,
    }
}

fn processes_of_this_user() -> u64 {
    let user = rustix::process::geteuid().as_raw();
    let ours = everybody().filter(|(_, uid)| *uid == user);
    ours.filter_map(|(pid, _)| Process::read(pid)).map(|process| u64::from(process.threads)).sum()
}
