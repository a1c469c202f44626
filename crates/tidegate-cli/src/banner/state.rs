use std::fmt;
use std::path::{Path, PathBuf};
use tidegate_server::config::Config;

/// Stores of earlier versions, in the working directory.
const EARLIER_USAGE: &str = "tidegate-data";
const EARLIER_TASKS: &str = "tidegate-tasks";

/// A store of an earlier version in the working directory, beside an empty place for the new one.
#[derive(Debug, PartialEq, Eq)]
pub struct EarlierStore {
    /// Path of the store.
    path: PathBuf,
    /// Place of the store that is used instead.
    store: String,
    /// The flag that names a store.
    flag: &'static str,
}

/// Banner line of the state folder, and a line for each store of an earlier version.
pub struct State<'a> {
    pub config: &'a Config,
    pub earlier: &'a [EarlierStore],
}

// === impl EarlierStore ===

impl EarlierStore {
    /// Finds the stores that an earlier version has left in the working directory and this start would not use.
    /// Looked for before the start, which makes the new ones.
    pub fn find(config: &Config, has_usage: bool, has_tasks: bool) -> Vec<Self> {
        let Some(folder) = &config.state_folder else { return Vec::new() };
        let parts = [
            (has_usage, &config.ingest.store, EARLIER_USAGE, "--store"),
            (has_tasks, &config.tasks.store, EARLIER_TASKS, "--task-store"),
        ];
        let unused = |(is_on, store, earlier, flag): (bool, &String, &str, &'static str)| {
            let is_default = Path::new(store).parent() == Some(folder);
            let path = PathBuf::from(earlier);
            let is_left = path.join("version").is_file() && !Path::new(store).exists();
            (is_on && is_default && is_left).then(|| Self { path, store: store.clone(), flag })
        };
        parts.into_iter().filter_map(unused).collect()
    }

    /// Logs a warning for each.
    pub fn warn(all: &[Self]) {
        for earlier in all {
            tracing::warn!("{earlier}");
        }
    }
}

impl fmt::Display for EarlierStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, store, flag) = (self.path.display(), &self.store, self.flag);
        write!(
            f,
            "./{path} of an earlier version is NOT used: stop, and move it to {store}, or start with {flag} {path}"
        )
    }
}

// === impl State ===

impl fmt::Display for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.config.state_folder {
            Some(folder) => writeln!(f, "  state      {} (--state-folder)", folder.display())?,
            None => writeln!(f, "  state      the working directory (--state-folder)")?,
        }
        self.earlier.iter().try_for_each(|earlier| writeln!(f, "             {earlier}"))
    }
}
