use super::choice;
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, quoted};
use super::password::masked;
use super::settings::Settings;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::capacity::Placement;

/// What the place looks like where slots are counted, in words.
pub(super) const LEDGER_SHAPE: &str = "memory, or redis://host:port/db";
/// What an executor's URL looks like, in words.
pub(super) const EXECUTOR_SHAPE: &str = "http://host:port, without a path";
/// What a variable looks like, in words.
pub(super) const VARIABLE_SHAPE: &str = "NAME=value";
/// What an argument looks like, in words.
pub(super) const ARGUMENT_SHAPE: &str = "arguments without line breaks";
/// What the ending of a file's name looks like, in words.
pub(super) const EXTENSION_SHAPE: &str = "1 … 16 letters and digits, without a dot";

/// Tasks: where they are kept, and who runs them.
#[derive(Clone, PartialEq)]
pub struct TasksConfig {
    /// Whether `tidegate up` takes tasks at all. Default true.
    pub enabled: bool,
    /// A folder, or the URL of a PostgreSQL database. Default `tidegate-tasks`.
    pub store: String,
    /// `memory`, or the URL of a Redis that several managers share. Default `memory`.
    pub ledger: String,
    /// How waiting tasks come to slots. Default pull.
    pub placement: Placement,
    /// This manager's name among those that share a store. Default by the machine and the port.
    pub node: Option<String>,
    /// Slots of the executor in this process, 0 … 65,536. Default one a core, none where there are other
    /// executors.
    pub slots: Option<u32>,
    /// What the executor in this process does. Default processes.
    pub executor: LocalExecutor,
    /// How long a task takes that a mock executor runs, 0 … 1 h. Default 50 ms.
    pub mock_work: Duration,
    /// How long one attempt may run that does not say, 1 ms … 24 h. Default 1 min.
    pub timeout: Duration,
    /// How long an executor keeps what nobody asks for, 1 s … 10 min. Default 15 s.
    pub lease: Duration,
    /// Tasks that may wait and run at once, 1 … 10,000,000. Default 100,000.
    pub tasks_max: usize,
    /// What they may hold in memory, 1 MiB … 64 GiB. Default 256 MiB.
    pub memory_bytes: usize,
    /// The longest code, 1 KiB … 2 MiB. Default 1 MiB.
    pub code_bytes_max: usize,
    /// The most output of an attempt that is kept, 1 KiB … 16 MiB. Default 1 MiB.
    pub output_bytes_max: usize,
    /// How long tasks are kept that are over, 1 h … 10 years. Default a week.
    pub retention: Duration,
    /// Where tasks of this process have their work folders. Default in the system's temporary folder.
    pub work_folder: Option<PathBuf>,
    /// Executors elsewhere, 0 … 1,000. Default none.
    pub executors: Vec<String>,
    /// Runtimes besides those that are found, 0 … 64. Default none.
    pub runtimes: Vec<RuntimeEntry>,
}

/// What the executor of a process does with a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LocalExecutor {
    /// Runs it in a sandbox.
    #[default]
    Process,
    /// Lets time go by.
    Mock,
}

/// Whether tasks of a runtime may use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkUse {
    /// Reaching for it ends the task.
    #[default]
    Deny,
    /// Reaching for it fails.
    Fail,
    /// They may.
    Allow,
}

/// A runtime that a file declares. What is not said is as for those that are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeEntry {
    /// What tasks call it.
    pub name: String,
    /// The program, by its path or by its name in `PATH`.
    pub command: PathBuf,
    /// Its arguments; `{file}` stands for the file with the code, which comes last when no argument has it.
    pub args: Vec<String>,
    /// Variables that its tasks see.
    pub env: BTreeMap<String, String>,
    /// How the name of the file with the code ends.
    pub extension: Option<String>,
    /// The longest that a task may run.
    pub timeout_max: Option<Duration>,
    /// The most memory that a task may use.
    pub memory_bytes_max: Option<u64>,
    /// The most processes and threads that a task may have at one time.
    pub processes_max: Option<u32>,
    /// The most CPU that a task may use, in seconds.
    pub cpu_s_max: Option<u64>,
    /// The most that a task may have in its work folder.
    pub file_bytes_max: Option<u64>,
    /// Whether its tasks may use the network.
    pub network: NetworkUse,
}

// === impl TasksConfig ===

impl TasksConfig {
    /// Where tasks are kept, without a password.
    #[must_use]
    pub fn store_shown(&self) -> String {
        masked(&self.store).into_owned()
    }

    /// Where slots are counted, without a password.
    #[must_use]
    pub fn ledger_shown(&self) -> String {
        masked(&self.ledger).into_owned()
    }

    /// The slots of the executor in this process.
    #[must_use]
    pub fn local_slots(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match self.slots {
            Some(slots) => slots,
            None if self.executors.is_empty() => u32::try_from(cores()).unwrap_or(1),
            None => 0,
        }
    }
}

/// Without the passwords that URLs may hold.
impl std::fmt::Debug for TasksConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TasksConfig")
            .field("enabled", &self.enabled)
            .field("store", &self.store_shown())
            .field("ledger", &self.ledger_shown())
            .field("placement", &self.placement)
            .field("slots", &self.slots)
            .field("executors", &self.executors)
            .finish_non_exhaustive()
    }
}

pub(super) fn tasks(settings: &Settings, items: &Items, ledger: &mut Ledger) -> TasksConfig {
    let mib = |key: &str| settings.size(key).saturating_mul(1 << 20);
    TasksConfig {
        enabled: settings.get("tasks.enabled"),
        store: settings.get("tasks.store"),
        ledger: settings.get("tasks.ledger"),
        placement: settings.choice("tasks.placement"),
        node: settings.optional("tasks.node"),
        slots: settings.optional::<u64>("tasks.slots").and_then(|slots| slots.try_into().ok()),
        executor: settings.choice("tasks.executor"),
        mock_work: settings.millis("tasks.mock_ms"),
        timeout: settings.millis("tasks.timeout_ms"),
        lease: settings.millis("tasks.lease_ms"),
        tasks_max: settings.size("tasks.tasks_max"),
        memory_bytes: mib("tasks.memory_mib"),
        code_bytes_max: settings.size("tasks.code_bytes_max"),
        output_bytes_max: settings.size("tasks.output_bytes_max"),
        retention: Duration::from_secs(settings.get::<u64>("tasks.retention_hours") * 3_600),
        work_folder: settings.optional("tasks.work_folder"),
        executors: executors(items, ledger),
        runtimes: runtimes(items, ledger),
    }
}

/// The executors, each once.
fn executors(items: &Items, ledger: &mut Ledger) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for item in items.of("executor") {
        let Some(url) = item.required("url", ledger) else { continue };
        let url = url.trim_end_matches('/').to_owned();
        if urls.contains(&url) {
            let origin = item.origin_of("url");
            let allowed = "each executor once".to_owned();
            ledger.add(Mistake::new(item.key("url"), origin, quoted(&url), allowed));
            continue;
        }
        urls.push(url);
    }
    urls
}

/// The runtimes, names unique.
fn runtimes(items: &Items, ledger: &mut Ledger) -> Vec<RuntimeEntry> {
    let mut runtimes: Vec<RuntimeEntry> = Vec::new();
    for item in items.of("runtime") {
        let (name, command) = (item.required("name", ledger), item.required("command", ledger));
        let (Some(name), Some(command)) = (name, command) else { continue };
        if runtimes.iter().any(|it| it.name == name) {
            let allowed = "a name of its own: another [[runtime]] has this one".to_owned();
            let origin = item.origin_of("name");
            ledger.add(Mistake::new(item.key("name"), origin, quoted(name), allowed));
            continue;
        }
        runtimes.push(runtime(item, name, command));
    }
    runtimes
}

fn runtime(item: &Item, name: &str, command: &str) -> RuntimeEntry {
    let mib = |field| item.get::<u64>(field).map(|mib| mib << 20);
    let env = item.names("env").unwrap_or_default().iter();
    let env = env.filter_map(|pair| pair.split_once('='));
    RuntimeEntry {
        name: name.to_owned(),
        command: PathBuf::from(command),
        args: item.names("args").unwrap_or_default().to_vec(),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        extension: item.text("extension").map(str::to_owned),
        timeout_max: item.get("timeout_max_ms").map(Duration::from_millis),
        memory_bytes_max: mib("memory_mib_max"),
        processes_max: item.get::<u64>("processes_max").and_then(|it| it.try_into().ok()),
        cpu_s_max: item.get("cpu_s_max"),
        file_bytes_max: mib("file_mib_max"),
        network: item.text("network").and_then(choice::from_name).unwrap_or_default(),
    }
}

pub(super) fn is_ledger(text: &str) -> bool {
    let shared = ["redis://", "valkey://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    text == "memory" || shared.is_some_and(|rest| !rest.is_empty())
}

pub(super) fn is_executor(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("http://") else { return false };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let plain = !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']);
    plain && authority.parse::<http::uri::Authority>().is_ok()
}

pub(super) fn is_variable(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty()) && !text.contains('\0')
}

pub(super) fn is_argument(text: &str) -> bool {
    !text.contains(['\0', '\n'])
}

pub(super) fn is_extension(text: &str) -> bool {
    (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn executors_and_runtimes_come_from_a_file() {
        let config = Config::from_toml(
            "[tasks]\nplacement = \"queue\"\nledger = \"redis://:secret@127.0.0.1:6379/1\"\n\
             [[executor]]\nurl = \"http://10.0.0.7:8083/\"\n\
             [[runtime]]\nname = \"node\"\ncommand = \"node\"\nargs = [\"--no-warnings\", \"{file}\"]\n\
             env = [\"NODE_ENV=test\"]\nmemory_mib_max = 256\nnetwork = \"fail\"\n",
        );
        let tasks = config.unwrap().tasks;
        assert_eq!(tasks.placement, Placement::Queue);
        assert_eq!(tasks.executors, ["http://10.0.0.7:8083"]);
        assert_eq!(tasks.local_slots(), 0, "others run them");
        let node = &tasks.runtimes[0];
        assert_eq!((node.name.as_str(), node.memory_bytes_max), ("node", Some(256 << 20)));
        assert_eq!((node.env["NODE_ENV"].as_str(), node.network), ("test", NetworkUse::Fail));
        assert!(!format!("{tasks:?}").contains("secret"));
        assert!(Config::default().tasks.local_slots() >= 1);
    }

    #[test]
    fn what_is_wrong_with_them_is_told_at_once() {
        let mistakes = Config::from_toml(
            "[tasks]\nplacement = \"push\"\nledger = \"mysql://x\"\n\
             [[executor]]\nurl = \"http://a:1\"\n[[executor]]\nurl = \"http://a:1/\"\n\
             [[executor]]\nurl = \"https://a:1\"\n[[runtime]]\nname = \"x\"\n",
        );
        let text = mistakes.unwrap_err().to_string();
        for part in ["tasks.placement", "tasks.ledger", "each executor once", "executor[3].url"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("runtime[1].command"), "{text}");
    }
}
