use super::tokens::Variables;
use crate::config::errors::{ErrorList, quoted};
use crate::config::policies::{LocalExecutor, NetworkUse};
use crate::config::schema::record;
use crate::config::value::shape::{
    ARGUMENTS, ASSIGNMENT, EXECUTOR_URL, EXTENSION, NAME, SLOT_LEDGER, STORE, TOKEN, VARIABLE,
};
use crate::config::value::{ApiKey, masked};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;
use tidegate::capacity::Placement;

record! {
    /// Store, executors and limits of tasks.
    #[derive(Clone, PartialEq)]
    pub struct TasksConfig from TasksSettings {
        /// Tasks of `tidegate up`; with upstreams off, unless a setting of tasks is given.
        enabled: bool = switch().or(true).flag("tasks").off_flag("no-tasks") => enabled;
        /// Requests about tasks go to the upstreams, which are managers, while `enabled` is off.
        forwarded: bool = switch().or(false) => forwarded;
        /// Store of tasks: a folder (default in the state folder), or postgres://user@host/database.
        store: String = text(STORE).or("tidegate-tasks".to_owned()).flag("task-store") => store;
        /// Slot ledger: memory, or redis://host:port/db for managers that share executors.
        slot_ledger: String = text(SLOT_LEDGER).or("memory".to_owned()).flag("slot-ledger")
            => slot_ledger;
        /// Strategy that assigns waiting tasks to the slots of executors.
        placement: Placement = word().or(Placement::Pull).flag("placement") => placement;
        /// Name of this manager among those that share a store. Default by machine and port.
        node: Option<String> = text(NAME).unset().example("manager-1") => node;
        /// Slots of the executor in this process. Default one per core, none with an `[[executor]]`.
        slots: Option<u32> = whole(0, 65_536, "slots").unset().example("8").flag("task-slots")
            => slots;
        /// Executor in this process: runs tasks in a sandbox (process), or only waits (mock).
        executor: LocalExecutor = word().or(LocalExecutor::Process) => executor;
        /// Duration of a task in a mock executor.
        mock_ms: Duration = millis(0, HOUR_MS).or_ms(50) => mock_work;
        /// The longest time that an attempt may run, for tasks without a timeout of their own.
        timeout_ms: Duration = millis(1, DAY_MS).or_ms(60_000) => timeout;
        /// Time without contact after which an attempt is lost and the task is tried again.
        lease_ms: Duration = millis(1_000, 10 * MINUTE_MS).or_ms(15_000) => lease;
        /// The most tasks that may wait and run at once.
        tasks_max: usize = whole(1, 10_000_000, "tasks").or(100_000) => tasks_max;
        /// The most memory that waiting and running tasks may use.
        memory_mib: usize = mebibytes(1, 65_536).or(256 << 20) => memory_bytes;
        /// The longest code of a task.
        code_bytes_max: usize = whole(1_024, 1 << 21, "bytes").or(1 << 20) => code_bytes_max;
        /// The most output of an attempt that is stored.
        output_bytes_max: usize = whole(1_024, 1 << 24, "bytes").or(1 << 20) => output_bytes_max;
        /// Lifetime of tasks and their output after their end.
        retention_hours: Duration = hours(1, 87_600).or_ms(7 * DAY_MS) => retention;
        /// File with the key that seals the values of `env` in the store. Default in the state folder.
        env_key_file: Option<PathBuf> = path().unset().example("/path/to/task-env.key") => env_key_file;
        /// Offers runtimes with network also where nothing keeps their tasks from this node's own ports.
        unguarded_network: bool = switch().or(false) => unguarded_network;
        /// Folder in which tasks run. Default a folder of this user in the system's temporary folder.
        work_folder: Option<PathBuf> = path().unset().example("/path/to/folder") => work_folder;
        /// PEM bundle of trusted authorities for https executors. Default the system's.
        tls_ca: Option<PathBuf> = path().unset().example("/path/to/ca.pem") => tls_ca;
        /// PEM certificate chain that the manager shows to executors that ask for one.
        tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem") => tls_cert;
        /// PEM private key of `tls_cert`.
        tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem") => tls_key;
    }
    derived |_settings| {
        /// Executors elsewhere, 0 … 1,000. Default none.
        executors: Vec<ExecutorEntry> = Vec::new();
        /// Ports of this node's listeners, which tasks with network must not connect to.
        node_ports: BTreeSet<u16> = BTreeSet::new();
        /// Runtimes besides those that are found on this machine, 0 … 64. Default none.
        runtimes: Vec<RuntimeEntry> = Vec::new();
    }
}

record! { ExecutorSettings {
    /// URL of the executor.
    url: String = text(EXECUTOR_URL).required().example("http://127.0.0.1:8083");
    /// Environment variable with the token of the executor, which the manager sends.
    token_env: Option<String> = text(VARIABLE).unset();
}}

/// An executor elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorEntry {
    /// Its base URL, without a slash at the end.
    pub url: String,
    /// The token that it expects. Default none.
    pub token: Option<ApiKey>,
}

record! {
    /// A runtime that the configuration declares. A missing value is as for a runtime that is found.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RuntimeEntry from RuntimeSettings {
        /// Name of the runtime in tasks.
        name: String = text(NAME).required().example("node") => name;
        /// Program, by its path or by its name in PATH.
        command: PathBuf = path().required().example("node") => command;
        /// Arguments; {file} is the file with the code, which comes last if no argument has it.
        args: Vec<String> = texts(ARGUMENTS).or(Vec::new()) => args;
        /// Environment variables of its tasks.
        env: Vec<String> = texts(ASSIGNMENT).or(Vec::new());
        /// Extension of the file with the code.
        extension: Option<String> = text(EXTENSION).unset().example("js") => extension;
        /// The longest time that a task may run.
        timeout_max_ms: Option<Duration> = millis(1, DAY_MS).unset() => timeout_max;
        /// The most memory of a task, all its processes together.
        memory_mib_max: Option<u64> = mebibytes(16, 1 << 20).unset() => memory_bytes_max;
        /// The most processes and threads of a task at one time.
        processes_max: Option<u32> = whole(1, 65_536, "processes").unset() => processes_max;
        /// The most CPU time of a task, all its processes together.
        cpu_s_max: Option<u64> = whole(1, 864_000, "s").unset() => cpu_s_max;
        /// The most data in the work folder of a task.
        file_mib_max: Option<u64> = mebibytes(1, 1 << 20).unset() => file_bytes_max;
        /// Use of the network by its tasks: ends the task (deny), fails (fail) or works (allow).
        network: NetworkUse = word().or(NetworkUse::Deny) => network;
    }
    derived |settings| {
        /// Environment variables of its tasks.
        env: BTreeMap<String, String> = {
            let pairs = settings.env.get();
            let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
    }
}

impl ExecutorEntry {
    /// An executor that expects no token.
    #[must_use]
    pub fn open(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None }
    }
}

impl TasksConfig {
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

/// Masks the passwords that URLs may contain.
impl std::fmt::Debug for TasksConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TasksConfig")
            .field("store", &masked(&self.store))
            .field("slot_ledger", &masked(&self.slot_ledger))
            .finish_non_exhaustive()
    }
}

/// The executors of the list, each once.
pub fn executors(
    list: &[ExecutorSettings],
    variables: Variables<'_>,
    errors: &mut ErrorList,
) -> Vec<ExecutorEntry> {
    let mut executors: Vec<ExecutorEntry> = Vec::new();
    for entry in list {
        let token = variables.secret(&entry.token_env, TOKEN, errors);
        let Some(url) = entry.url.required(errors) else { continue };
        let url = url.trim_end_matches('/').to_owned();
        if executors.iter().any(|executor| executor.url == url) {
            errors.push(entry.url.error(quoted(&url), "each executor once"));
            continue;
        }
        executors.push(ExecutorEntry { url, token: token.as_deref().map(ApiKey::new) });
    }
    executors
}

/// The runtimes of the list, with unique names.
pub fn runtimes(list: &[RuntimeSettings], errors: &mut ErrorList) -> Vec<RuntimeEntry> {
    let mut runtimes: Vec<RuntimeEntry> = Vec::new();
    for entry in list {
        let (name, command) = (entry.name.required(errors), entry.command.required(errors));
        let (Some(name), Some(_)) = (name, command) else { continue };
        if runtimes.iter().any(|runtime| runtime.name == name) {
            let allowed = "a name of its own: another [[runtime]] has this one";
            errors.push(entry.name.error(quoted(&name), allowed));
            continue;
        }
        runtimes.push(entry.config());
    }
    runtimes
}
