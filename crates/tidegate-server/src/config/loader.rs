use super::Origin;
use super::items::Items;
use super::mistakes::{Ledger, Mistake};
use super::schema;
use super::settings::{Said, Settings};
use super::value::Raw;
use super::{Config, Mistakes, Setting, assemble, env, file};
use std::collections::BTreeMap;

/// Builds a [`Config`] from a file, the environment and flags; what comes later in that order wins.
///
/// Nothing is read that was not passed in: neither a file nor the process's environment.
///
/// ```
/// use tidegate_server::config::Loader;
///
/// let loaded = Loader::new()
///     .file("tidegate.toml", "[admission]\nhigh_limit = 10")
///     .env([("TIDEGATE_ADMISSION_HIGH_LIMIT".to_owned(), "20".to_owned())])
///     .flag("admission.high_limit", "30")
///     .load()?;
/// assert_eq!(loaded.config.admission.limits.high, 30);
/// # Ok::<(), tidegate_server::config::Mistakes>(())
/// ```
#[derive(Clone, Default)]
pub struct Loader {
    file: Option<(String, String)>,
    env: BTreeMap<String, String>,
    flags: Vec<Flag>,
}

/// A configuration, and what it was made of.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Every setting with its effective value and where that comes from, in the order of the schema; then the
    /// entries of lists.
    pub origins: Vec<Setting>,
}

#[derive(Clone)]
struct Flag {
    typed: String,
    key: String,
    value: String,
}

// === impl Loader ===

impl Loader {
    /// A loader of the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The contents of the configuration file; the path is only for messages.
    #[must_use]
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<String>) -> Self {
        self.file = Some((path.into(), contents.into()));
        self
    }

    /// The environment. Names that are not ours are skipped.
    #[must_use]
    pub fn env(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(variables);
        self
    }

    /// A setting from the command line, by its key. Of several for one key the last wins; `upstream` adds up.
    #[must_use]
    pub fn flag(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.flag_typed(format!("--set {key}"), key, value)
    }

    /// The same for a flag with a name of its own, such as `--high-limit`, which messages then use.
    #[must_use]
    pub fn flag_typed(
        mut self,
        typed: impl Into<String>,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        self.flags.push(Flag { typed: typed.into(), key: key.into(), value: value.into() });
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    ///
    /// Every mistake of every layer, also those that a later layer overrides.
    pub fn load(&self) -> Result<Loaded, Mistakes> {
        let (mut said, mut items, mut ledger) =
            (Said::default(), Items::default(), Ledger::default());
        if let Some((path, contents)) = &self.file {
            file::Reader::new(path, contents, &mut said, &mut items, &mut ledger).read();
        }
        env::read(&self.env, &mut said, &mut items, &mut ledger);
        self.read_flags(&mut said, &mut items, &mut ledger);
        let settings = Settings::resolve(&said, &mut ledger);
        let config = assemble::config(&settings, &items, &self.env, &mut ledger);
        ledger.settle()?;
        Ok(Loaded { config, origins: Setting::all(&settings, &items) })
    }

    fn read_flags(&self, said: &mut Said, items: &mut Items, ledger: &mut Ledger) {
        for flag in &self.flags {
            let origin = Origin::Flag(flag.typed.clone());
            match (schema::setting(&flag.key), schema::list(&flag.key)) {
                (Some(field), _) => said.say(field, Raw::Untyped(flag.value.clone()), origin),
                (None, Some(list)) if list.short.is_some() => {}
                (None, _) => ledger.add(flag.unknown(&origin)),
            }
        }
        for list in schema::LISTS.iter().filter(|list| list.short.is_some()) {
            let flags = self.flags.iter().filter(|flag| flag.key == list.key);
            let texts: Vec<_> =
                flags.map(|flag| (flag.value.as_str(), Origin::Flag(flag.typed.clone()))).collect();
            if !texts.is_empty() {
                items.replace(list, env::short_items(list, texts, ledger));
            }
        }
    }
}

// === impl Flag ===

impl Flag {
    fn unknown(&self, origin: &Origin) -> Mistake {
        let list = self.key.split(['.', '[']).next().and_then(schema::list);
        match list {
            Some(list) => {
                let allowed = match list.short {
                    Some(_) => format!("{}=… as a whole, or the file", list.key),
                    None => format!("[[{}]] in the file", list.key),
                };
                Mistake::new(&self.key, origin, "a part of a list", allowed)
            }
            None => file::unknown_key(&self.key, origin),
        }
    }
}
