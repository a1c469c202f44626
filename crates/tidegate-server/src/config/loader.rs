use super::errors::{ConfigError, ConfigErrors, ErrorList};
use super::layers::{read_env, read_file, unknown_key};
use super::show::Effective;
use super::table::{Config, Table};
use super::value::Raw;
use super::{Origin, checks};
use std::collections::BTreeMap;

/// Builds a [`Config`] from a file, the environment and flags; a later layer wins.
///
/// The loader reads only what it is given: no file, and not the environment of the process.
///
/// ```
/// use tidegate_server::config::Loader;
///
/// let loaded = Loader::new()
///     .file("tidegate.toml", "[admission]\nhigh_limit = 10")
///     .env([("TIDEGATE_ADMISSION_HIGH_LIMIT".to_owned(), "20".to_owned())])
///     .flag("--high-limit", "admission.high_limit", "30")
///     .load()?;
/// assert_eq!(loaded.config.admission.limits.high, 30);
/// # Ok::<(), tidegate_server::config::ConfigErrors>(())
/// ```
#[must_use = "a loader does nothing until `load`"]
#[derive(Clone, Default)]
pub struct Loader {
    file: Option<(String, String)>,
    file_mode: Option<u32>,
    env: BTreeMap<String, String>,
    /// Flag as typed, key and value.
    flags: Vec<[String; 3]>,
}

/// A configuration, and the origin of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Every setting with its effective value and origin, in the order of the file; then the entries of lists.
    pub origins: Vec<Effective>,
}

// === impl Loader ===

impl Loader {
    /// A loader of the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The contents of the configuration file; the path is only for messages.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<String>) -> Self {
        self.file = Some((path.into(), contents.into()));
        self
    }

    /// The permission bits of the file. A file with tokens that every user can read is refused.
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.file_mode = Some(mode);
        self
    }

    /// The environment. Variables without a meaning for Tidegate are skipped.
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(variables);
        self
    }

    /// A setting from the command line: the flag as typed, for messages, then its key and value. The last flag
    /// of a key wins; those of a list, such as `upstream`, add up.
    pub fn flag(
        mut self,
        typed: impl Into<String>,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        self.flags.push([typed.into(), key.into(), value.into()]);
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    ///
    /// Every error of every layer, also of values that a later layer overrides.
    pub fn load(&self) -> Result<Loaded, ConfigErrors> {
        let (loaded, errors) = self.load_with_errors();
        errors.map_or(Ok(loaded), Err)
    }

    /// Reads and checks everything. The configuration has the default of each value that is wrong: use it only to
    /// find further errors, such as those of the files that it names.
    pub fn load_with_errors(&self) -> (Loaded, Option<ConfigErrors>) {
        let (mut table, mut errors) = (Table::new(), ErrorList::new());
        if let Some((path, contents)) = &self.file {
            read_file(path, contents, &mut table, &mut errors);
        }
        read_env(&self.env, &mut table, &mut errors);
        self.read_flags(&mut table, &mut errors);
        table.fill(&self.env);
        checks::run(&table, &mut errors);
        if let Some(mode) = self.file_mode {
            checks::exposed_file(&table, mode, &mut errors);
        }
        let config = table.config(&self.env, &mut errors);
        (Loaded { config, origins: Effective::all(&table) }, ConfigErrors::check(errors).err())
    }

    fn read_flags(&self, table: &mut Table, errors: &mut ErrorList) {
        for list in table.lists_mut() {
            let field = *list.field();
            if field.flag.is_some() && self.flags.iter().any(|[_, key, _]| *key == field.key) {
                list.clear();
            }
        }
        for [typed, key, value] in &self.flags {
            let origin = Origin::Flag(typed.clone());
            let list = table.list_mut(key).filter(|list| list.field().flag.is_some());
            if let Some(list) = list {
                list.add_short(value, &origin, errors);
            } else if let Some(setting) = table.setting_mut(key) {
                setting.set(Raw::Untyped(value), origin, errors);
            } else {
                errors.push(unknown_flag(key, table, &origin));
            }
        }
    }
}

fn unknown_flag(key: &str, table: &mut Table, origin: &Origin) -> ConfigError {
    let list = key.split(['.', '[']).next().and_then(|key| table.list_mut(key));
    let allowed = match list.map(|list| *list.field()) {
        None => return unknown_key(key, origin, table.keys()),
        Some(list) if list.flag.is_some() => format!("{}=… as a whole, or the file", list.key),
        Some(list) => format!("[[{}]] in the file", list.key),
    };
    ConfigError::new(key, origin, "a part of a list", allowed)
}

// === impl Config ===

impl Config {
    /// The configuration of a TOML text over the defaults, without environment and flags.
    ///
    /// # Errors
    ///
    /// Every error in the text, not only the first.
    ///
    /// ```
    /// use tidegate_server::config::Config;
    ///
    /// let errors = Config::from_toml("[admission]\nhihg_limit = 32\nsharing = 1").unwrap_err();
    /// assert_eq!(errors.len(), 2);
    /// assert!(errors.to_string().contains("did you mean admission.high_limit?"));
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, ConfigErrors> {
        Loader::new().file("<toml>", text).load().map(|loaded| loaded.config)
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut table = Table::new();
        table.fill(&BTreeMap::new());
        table.config(&BTreeMap::new(), &mut ErrorList::new())
    }
}
