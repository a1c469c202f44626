use crate::config::{NetworkUse, RuntimeEntry};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Configuration of the process runner.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// Program with the subcommand `launch`. Default: this program.
    pub launcher: Option<PathBuf>,
    /// Parent of the work folders. Default: a folder of this user in the system's temporary folder.
    pub folder: PathBuf,
    /// Use of each layer.
    pub layers: Layers,
    /// Grace period between TERM and KILL. Default 2 s.
    pub grace: Duration,
    /// Longest time that processes may outlive their task's first before they are killed as leftovers: the other
    /// end of a pipeline, or a runtime's helper that waits for its parent's end. Default 300 ms, below the 10 s
    /// after which the worker kills a supervisor that does not end its task.
    pub leave_within: Duration,
    /// Runtimes besides `python` and `sh`; one of those names replaces the runtime that would be found.
    pub runtimes: Vec<RuntimeConfig>,
    /// Paths that every task may read besides the system's programs and libraries.
    pub readable: Vec<PathBuf>,
    /// First of the 256 users that tasks of a root worker run as, one user for each running task. Default 60800,
    /// in a range that neither distributions nor systemd assign.
    pub uid_first: u32,
    /// TCP ports that tasks with network must not connect to, besides those on which this process listens.
    /// Default none.
    pub refused_ports: BTreeSet<u16>,
    /// Runtimes with network are offered although nothing keeps their tasks from the ports of this process.
    /// Default false.
    pub unguarded_network: bool,
}

/// Use of each layer of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Kernel limits for each process.
    pub rlimits: LayerUse,
    /// Namespaces and read-only mounts by bubblewrap.
    pub bubblewrap: LayerUse,
    /// Kernel rules about file access.
    pub landlock: LayerUse,
    /// System call filter.
    pub seccomp: LayerUse,
    /// Separate user for each running task; needs a root worker.
    pub uid: LayerUse,
    /// Limits on processes, memory, CPU and files of the whole task.
    pub watcher: LayerUse,
}

/// Policy for one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerUse {
    /// Used when available.
    #[default]
    Auto,
    /// Always used: without it the worker does not start.
    Require,
    /// Never used.
    Off,
}

/// Network access of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Opening a network socket kills the task.
    #[default]
    Deny,
    /// Opening a network socket fails, and the task goes on.
    Fail,
    /// The network access of the machine.
    Allow,
}

/// Runtime of tasks: a program that runs code, and the limits of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Name that tasks use.
    pub name: String,
    /// Program, by its path or by its name in `PATH`.
    pub command: PathBuf,
    /// Arguments of the program. `{file}` stands for the file with the code; without it the file comes last.
    pub args: Vec<String>,
    /// Environment variables of its tasks.
    pub env: BTreeMap<String, String>,
    /// Extension of the file with the code, without the dot. Empty: none.
    pub extension: String,
    /// Paths that its tasks may read besides those of every task. The program's own folder is included anyway.
    pub readable: Vec<PathBuf>,
    /// Longest run time of a task. Default 1 hour.
    pub timeout_max: Duration,
    /// Most memory of all processes of a task, in bytes, at least 16 MiB. Default 1 GiB.
    pub memory_bytes_max: u64,
    /// Most processes and threads of a task at one time. Default 128.
    pub processes_max: u32,
    /// Most CPU time of all processes of a task, in seconds. Default 3600.
    pub cpu_s_max: u64,
    /// Most bytes in a task's work folder. Default 1 GiB.
    pub file_bytes_max: u64,
    /// Most files and folders in a task's work folder. Default 20,000.
    pub files_max: u32,
    /// Network access of its tasks. Default: none.
    pub network: Network,
}

// === impl ProcessConfig ===

impl Default for ProcessConfig {
    fn default() -> Self {
        let user = rustix::process::geteuid().as_raw();
        Self {
            launcher: None,
            folder: std::env::temp_dir().join(format!("tidegate-work-{user}")),
            layers: Layers::default(),
            grace: Duration::from_secs(2),
            leave_within: Duration::from_millis(300),
            runtimes: Vec::new(),
            readable: Vec::new(),
            uid_first: 60_800,
            refused_ports: BTreeSet::new(),
            unguarded_network: false,
        }
    }
}

// === impl RuntimeConfig ===

impl RuntimeConfig {
    /// A runtime with the default limits.
    #[must_use]
    pub fn new(name: &str, command: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            extension: String::new(),
            readable: Vec::new(),
            timeout_max: Duration::from_secs(3_600),
            memory_bytes_max: 1 << 30,
            processes_max: 128,
            cpu_s_max: 3_600,
            file_bytes_max: 1 << 30,
            files_max: 20_000,
            network: Network::default(),
        }
    }

    /// The default `python`. A command without a path is searched in `PATH`.
    #[must_use]
    pub fn python() -> Self {
        let mut python = Self { extension: "py".to_owned(), ..Self::new("python", "python3") };
        // Text that was printed before a task was stopped must not stay in a buffer.
        python.env.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        python.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
        python
    }

    /// The default `sh`.
    #[must_use]
    pub fn sh() -> Self {
        Self { extension: "sh".to_owned(), ..Self::new("sh", "sh") }
    }
}

/// The runtime of a configuration file: its settings over the defaults of that name.
impl From<&RuntimeEntry> for RuntimeConfig {
    fn from(entry: &RuntimeEntry) -> Self {
        let mut runtime = match entry.name.as_str() {
            "python" => Self::python(),
            "sh" => Self::sh(),
            name => Self::new(name, &entry.command),
        };
        runtime.command.clone_from(&entry.command);
        runtime.args.clone_from(&entry.args);
        runtime.env.extend(entry.env.clone());
        if let Some(extension) = &entry.extension {
            runtime.extension.clone_from(extension);
        }
        runtime.timeout_max = entry.timeout_max.unwrap_or(runtime.timeout_max);
        runtime.memory_bytes_max = entry.memory_bytes_max.unwrap_or(runtime.memory_bytes_max);
        runtime.processes_max = entry.processes_max.unwrap_or(runtime.processes_max);
        runtime.cpu_s_max = entry.cpu_s_max.unwrap_or(runtime.cpu_s_max);
        runtime.file_bytes_max = entry.file_bytes_max.unwrap_or(runtime.file_bytes_max);
        runtime.network = match entry.network {
            NetworkUse::Deny => Network::Deny,
            NetworkUse::Fail => Network::Fail,
            NetworkUse::Allow => Network::Allow,
        };
        runtime
    }
}
