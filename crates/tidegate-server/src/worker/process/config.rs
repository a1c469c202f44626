use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What the process executor is told.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The program with the subcommand `launch`. Not said: this very program.
    pub launcher: Option<PathBuf>,
    /// Where work folders are made. Default: a folder of this user in the system's temporary one.
    pub folder: PathBuf,
    /// Which layers are used.
    pub layers: Layers,
    /// Between the request to end and the end. Default 2 s.
    pub grace: Duration,
    /// How long processes may take to leave after their task's first has left, before they are ended as leftovers:
    /// a pipeline's other end, or the helper of a runtime that waits for its parent's end. Default 300 ms, less
    /// than the 10 s after which a supervisor that does not end what it was told to is killed itself.
    pub leave_within: Duration,
    /// What can be run besides `python` and `sh`; one of those names replaces what would be found.
    pub runtimes: Vec<RuntimeConfig>,
    /// What every task may read besides the system's programs and libraries.
    pub readable: Vec<PathBuf>,
    /// Of a worker that is root: the first of the 256 users that tasks run as, one user for each running task.
    /// Default 60800, in a range that neither distributions nor systemd give away.
    pub uid_first: u32,
}

/// Which layers of the sandbox are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// Limits of the kernel for each process.
    pub rlimits: LayerUse,
    /// Namespaces and read-only mounts, by the program bubblewrap.
    pub bubblewrap: LayerUse,
    /// Rules of the kernel about files.
    pub landlock: LayerUse,
    /// A filter of system calls.
    pub seccomp: LayerUse,
    /// A user of its own for each running task; only a worker that is root can have that.
    pub uid: LayerUse,
    /// Counts processes, memory, CPU and files of the whole task.
    pub watcher: LayerUse,
}

/// Whether a layer is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayerUse {
    /// When it is there.
    #[default]
    Auto,
    /// Always: without it the worker does not start.
    Require,
    /// Never.
    Off,
}

/// What tasks may do on the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Reaching for it ends the task.
    #[default]
    Deny,
    /// Reaching for it fails, and the task may go on without.
    Fail,
    /// Everything that the machine may.
    Allow,
}

/// Something that runs code, and how much of the machine its tasks may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// What tasks call it.
    pub name: String,
    /// The program, by its path or by its name in `PATH`.
    pub command: PathBuf,
    /// Its arguments. `{file}` stands for the file with the code, which comes last when no argument has it.
    pub args: Vec<String>,
    /// Variables that its tasks see.
    pub env: BTreeMap<String, String>,
    /// How the name of the file with the code ends, without the dot. Empty: it has none.
    pub extension: String,
    /// What its tasks may read besides what every task may. Where the program lies is known.
    pub readable: Vec<PathBuf>,
    /// The longest that a task may run. Default an hour.
    pub timeout_max: Duration,
    /// The most memory that a task may use, all its processes together. Default 1 GiB, at least 16 MiB.
    pub memory_bytes_max: u64,
    /// The most processes and threads that a task may have at one time. Default 128.
    pub processes_max: u32,
    /// The most CPU that a task may use, all its processes together, in seconds. Default 3600.
    pub cpu_s_max: u64,
    /// The most that a task may have in its work folder. Default 1 GiB.
    pub file_bytes_max: u64,
    /// The most files and folders that a task may have in its work folder. Default 20,000.
    pub files_max: u32,
    /// What its tasks may do on the network. Default nothing.
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

    /// `python` as it is when nothing else is said. Its program is looked for when the command is only a name.
    #[must_use]
    pub fn python() -> Self {
        let mut python = Self { extension: "py".to_owned(), ..Self::new("python", "python3") };
        // What was printed before a task was stopped should be there to be read.
        python.env.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        python.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
        python
    }

    /// `sh` as it is when nothing else is said.
    #[must_use]
    pub fn sh() -> Self {
        Self { extension: "sh".to_owned(), ..Self::new("sh", "sh") }
    }
}
