//! A runner with small limits, and what is asked of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tidegate::task::{Ending, OutputStream, TaskId};
use tidegate_server::tasks::execution::{
    OutputSink, ProgressSink, ProgressSnapshot, StopReason, StopSignal, Work,
};
use tidegate_server::tasks::sandbox::{
    LayerUse, Layers, Network, ProcessConfig, ProcessRunner, RuntimeConfig,
};

/// Output limit of a task.
pub const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Disk limit of a task.
pub const FILE_BYTES_MAX: u64 = 8 << 20;
/// Timeout of a test, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Layers that `scripts/setup` provides.
const SYSTEM_PYTHON: &str = "/usr/bin/python3";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Which layers a test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All that this machine has.
    All,
    /// No namespaces.
    NoBubblewrap,
    /// Layers of every machine: session and watcher.
    WatcherOnly,
}

/// A runner whose folder goes with it.
pub struct Bench {
    pub runner: ProcessRunner,
    pub folder: PathBuf,
}

/// A task and its output.
pub struct Ran {
    pub ending: Ending,
    pub out: String,
    pub err: String,
    pub progress: ProgressSnapshot,
}

impl Mode {
    pub fn layers(self) -> Layers {
        let off = LayerUse::Off;
        match self {
            Self::All => Layers::default(),
            Self::NoBubblewrap => Layers { bubblewrap: off, ..Layers::default() },
            Self::WatcherOnly => Layers {
                rlimits: off,
                bubblewrap: off,
                landlock: off,
                seccomp: off,
                uid: off,
                watcher: LayerUse::Require,
            },
        }
    }
}

/// A name that no other test of this machine has.
pub fn unique() -> String {
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A runtime with small limits.
pub fn small(runtime: RuntimeConfig) -> RuntimeConfig {
    RuntimeConfig {
        memory_bytes_max: 256 << 20,
        processes_max: 40,
        cpu_s_max: 20,
        file_bytes_max: FILE_BYTES_MAX,
        files_max: 500,
        ..runtime
    }
}

pub fn config(mode: Mode) -> ProcessConfig {
    ProcessConfig {
        launcher: Some(env!("CARGO_BIN_EXE_tidegate").into()),
        folder: std::env::temp_dir().join(format!("tidegate-sandbox-{}", unique())),
        layers: mode.layers(),
        grace: Duration::from_millis(500),
        runtimes: vec![small(RuntimeConfig::sh()), small(RuntimeConfig::python())],
        ..ProcessConfig::default()
    }
}

/// The system's Python under other names, with another limit each.
pub fn odd_runtimes() -> [RuntimeConfig; 3] {
    let python = RuntimeConfig { command: SYSTEM_PYTHON.into(), ..small(RuntimeConfig::python()) };
    let named = |name: &str| RuntimeConfig { name: name.into(), ..python.clone() };
    [
        RuntimeConfig { network: Network::Fail, ..named("offline") },
        RuntimeConfig { network: Network::Allow, ..named("online") },
        RuntimeConfig { cpu_s_max: 1, ..named("brief") },
    ]
}

impl Bench {
    pub async fn new(mode: Mode) -> Self {
        Self::with(config(mode)).await
    }

    /// With `offline`, `online` and `brief` too.
    pub async fn with_odd_runtimes(mode: Mode) -> Self {
        let mut config = config(mode);
        config.runtimes.extend(odd_runtimes());
        // Not every mode has the layers that keep tasks from this process's ports.
        config.unguarded_network = true;
        Self::with(config).await
    }

    pub async fn with(config: ProcessConfig) -> Self {
        let folder = config.folder.clone();
        Self { runner: ProcessRunner::new(config).await.unwrap(), folder }
    }

    pub async fn run(&self, runtime: &str, code: &str) -> Ran {
        self.run_work(&work(runtime, code)).await
    }

    pub async fn run_work(&self, work: &Work) -> Ran {
        let (_switch, stop) = StopSignal::new();
        self.run_until(work, stop).await
    }

    /// Runs it, and stops it when it has written something.
    pub async fn stop_when_heard(&self, work: &Work, why: StopReason) -> Ran {
        let (switch, stop) = StopSignal::new();
        let (sink, progress) = (OutputSink::new(OUTPUT_BYTES_MAX), ProgressSink::new());
        let heard = async {
            while sink.text(OutputStream::Stdout).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            switch.stop(why);
            std::future::pending::<()>().await;
        };
        let ending = tokio::select! {
            ending = within(self.runner.run(work, &sink, &progress, stop)) => ending,
            () = heard => unreachable!("it waits forever"),
        };
        Ran::new(ending, &sink, &progress)
    }

    async fn run_until(&self, work: &Work, stop: StopSignal) -> Ran {
        let (sink, progress) = (OutputSink::new(OUTPUT_BYTES_MAX), ProgressSink::new());
        let ending = within(self.runner.run(work, &sink, &progress, stop)).await;
        Ran::new(ending, &sink, &progress)
    }

    /// A signal to everybody, where it can only reach the task itself. A test must not depend on the sandbox for
    /// the safety of whoever runs it.
    pub fn kill_everybody(&self) -> &'static str {
        let layers = self.runner.layers();
        let has = |name| layers.iter().any(|layer| layer.active && layer.layer == name);
        match has("bubblewrap") || has("uid") {
            true => "kill -9 -1",
            false => "true",
        }
    }

    /// Asserts that the runner still works and that earlier tasks left nothing behind.
    pub async fn assert_healthy(&self) {
        let ran = self.run("python", "print(6 * 7)").await;
        assert_eq!(ran.out, "42\n", "{:?} {}", ran.ending, ran.err);
        assert_eq!(ran.ending.exit_code, Some(0));
        assert_eq!(ran.ending.stopped, [""; 0]);
        wait_until("earlier processes are swept", || {
            fs::read_dir(&self.folder).unwrap().count() == 1
        });
        assert_eq!(self.work_folders(), [""; 0], "of tasks that have ended");
        wait_until("everything is swept", || self.unswept() == 0);
    }

    /// Names of the work folders of tasks that run.
    pub fn work_folders(&self) -> Vec<String> {
        let names = fs::read_dir(self.life()).unwrap().flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| !["lock", "swept"].contains(&name.as_str())).collect()
    }

    /// Number of the folders that wait for their removal.
    pub fn unswept(&self) -> usize {
        fs::read_dir(self.life().join("swept")).unwrap().count()
    }

    /// Folder of this process.
    fn life(&self) -> PathBuf {
        let lives: Vec<_> = fs::read_dir(&self.folder).unwrap().flatten().collect();
        assert_eq!(lives.len(), 1, "{lives:?}");
        lives[0].path()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Ran {
    fn new(ending: Ending, sink: &OutputSink, progress: &ProgressSink) -> Self {
        let (out, err) = (sink.text(OutputStream::Stdout), sink.text(OutputStream::Stderr));
        Self { ending, out, err, progress: progress.snapshot() }
    }

    /// Text for a failed assertion.
    pub fn story(&self) -> String {
        let cut = |text: &str| text.chars().take(2_000).collect::<String>();
        format!("{:?}\n{}\n{}", self.ending, cut(&self.out), cut(&self.err))
    }
}

pub fn work(runtime: &str, code: &str) -> Work {
    Work {
        key: TaskId::new("t").unwrap().attempt(1),
        runtime: runtime.to_owned(),
        code: code.to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        timeout: PATIENCE,
    }
}

pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it should have ended by now")
}

/// True if a process with this argument runs.
pub fn runs(argument: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
