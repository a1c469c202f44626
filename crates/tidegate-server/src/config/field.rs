use tidegate::admission::Role;

/// One value that can be configured. Reading, checking, the commented file and `config show` all follow from
/// the table of these.
#[derive(Debug)]
pub struct Field {
    /// The dotted key, such as `admission.high_limit`; inside of a list the bare key.
    pub key: &'static str,
    /// One line for people.
    pub doc: &'static str,
    /// What one of it is, such as `ms`.
    pub unit: Option<&'static str>,
    /// Environment names beside the one that follows from the key.
    pub env_aliases: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) fallback: Fallback,
}

/// A list of tables, such as `[[upstream]]`.
#[derive(Debug)]
pub struct List {
    /// The key, such as `upstream`.
    pub key: &'static str,
    /// One line for people.
    pub doc: &'static str,
    /// The most entries it may have.
    pub max: usize,
    /// What an entry says.
    pub fields: &'static [Field],
    /// The field that the environment and flags give, when they may.
    pub(super) short: Option<&'static str>,
    /// An entry as it could stand in a file.
    pub(super) example: &'static [(&'static str, &'static str)],
}

/// The type of a value and what of it is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Integer {
        min: u64,
        max: u64,
    },
    Ratio {
        min: f64,
        max: f64,
    },
    Address,
    Word(&'static [&'static str]),
    Switch,
    /// Several texts; with commas where there are no lists.
    Names {
        shape: &'static str,
        check: fn(&str) -> bool,
    },
    Priority,
    Path,
    Url,
    Text {
        shape: &'static str,
        check: fn(&str) -> bool,
    },
    Secret {
        shape: &'static str,
        check: fn(&str) -> bool,
    },
}

/// What holds when nobody says anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fallback {
    /// This, written as on the command line.
    Is(&'static str),
    /// What the role's preset has.
    Preset(fn(Role) -> u64),
    /// A tenth of the global limit that is in force.
    TenthOfGlobal,
    /// Nothing.
    Unset,
}

// === impl Field ===

impl Field {
    pub(super) const fn new(
        key: &'static str,
        kind: Kind,
        fallback: Fallback,
        doc: &'static str,
    ) -> Self {
        Self { key, doc, unit: None, env_aliases: &[], kind, fallback }
    }

    pub(super) const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    pub(super) const fn alias(mut self, names: &'static [&'static str]) -> Self {
        self.env_aliases = names;
        self
    }

    /// The environment variable that sets it.
    #[must_use]
    pub fn env_name(&self) -> String {
        env_name(self.key)
    }

    /// Every environment variable that sets it.
    pub fn env_names(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.env_name())
            .chain(self.env_aliases.iter().map(|alias| (*alias).to_owned()))
    }

    /// The section of the file it stands in, `None` at the top.
    #[must_use]
    pub fn section(&self) -> Option<&'static str> {
        self.key.split_once('.').map(|(section, _)| section)
    }

    /// The key within its section.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }
}

// === impl List ===

impl List {
    pub(super) fn field(&self, key: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.key == key)
    }
}

/// The environment variable that follows from a key.
pub(super) fn env_name(key: &str) -> String {
    format!("TIDEGATE_{}", key.to_uppercase().replace('.', "_"))
}
