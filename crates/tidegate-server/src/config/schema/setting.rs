use crate::config::Origin;
use crate::config::errors::{ConfigError, ErrorList};
use crate::config::value::{Choice, Kind, Limits, Raw, name_of};
use std::time::Duration;
use tidegate::admission::Role;

/// A kind of value with its default, and the names that set it outside of the file.
pub struct Spec<T> {
    kind: Kind<T>,
    default: T,
    by_role: Option<fn(Role) -> T>,
    names: Names,
}

/// Names that set a setting outside of the file, and an example.
#[derive(Clone, Copy, Default)]
pub struct Names {
    /// The flag of the command line, without dashes.
    pub flag: Option<&'static str>,
    /// The flag that turns a switch off, without dashes.
    pub off_flag: Option<&'static str>,
    /// An environment variable besides the one that follows from the key.
    pub env_alias: Option<&'static str>,
    /// A valid value for documentation.
    pub example: Option<&'static str>,
}

/// The part of a setting that does not depend on its type.
pub struct State {
    /// The full key, such as `admission.high_limit` or `client[2].token`.
    pub key: String,
    /// The key within its section or list entry.
    pub name: &'static str,
    /// One line of documentation.
    pub doc: &'static str,
    pub names: Names,
    pub limits: Limits,
    pub origin: Origin,
    /// True if a layer has set a value.
    pub is_given: bool,
    /// False if a layer has given a value that was refused: the value in force is then nobody's intention.
    pub is_sound: bool,
}

/// A setting with the value in force.
pub struct Setting<T> {
    pub state: State,
    spec: Spec<T>,
    value: T,
}

/// A setting of any type.
pub trait AnySetting {
    fn state(&self) -> &State;
    fn state_mut(&mut self) -> &mut State;
    /// Takes a value unless it is refused.
    fn accept(&mut self, raw: Raw<'_>) -> bool;
    /// Applies the preset of the role unless a layer has set a value.
    fn fill(&mut self, role: Role);
    /// The value as in a TOML file, without secrets; `None` if not set.
    fn shown(&self) -> Option<toml::Value>;
    /// The preset of the role, as in a TOML file.
    fn preset(&self, role: Role) -> Option<toml::Value>;
}

/// Settings side by side: a section, or an entry of a list.
pub trait Record {
    /// The settings with their defaults. Their keys start with `prefix`; errors about missing values point to
    /// `origin`.
    fn new(prefix: &str, origin: &Origin) -> Self
    where
        Self: Sized;
    fn settings(&self) -> Vec<&dyn AnySetting>;
    fn settings_mut(&mut self) -> Vec<&mut dyn AnySetting>;
}

// === impl Spec ===

impl<T: 'static> Kind<T> {
    /// A setting that always has a value.
    pub fn or(self, default: T) -> Spec<T> {
        Spec { kind: self, default, by_role: None, names: Names::default() }
    }

    /// A setting whose default is the preset of the role.
    pub fn or_by_role(self, preset: fn(Role) -> T) -> Spec<T> {
        Spec { by_role: Some(preset), ..self.or(preset(Role::Gate)) }
    }

    /// A setting without a default.
    pub fn unset(self) -> Spec<Option<T>> {
        self.optional().or(None)
    }

    /// A setting of an entry that every entry must give.
    pub fn required(self) -> Spec<T>
    where
        T: Default,
    {
        self.or(T::default())
    }
}

impl Kind<Duration> {
    pub fn or_ms(self, default_ms: u64) -> Spec<Duration> {
        self.or(Duration::from_millis(default_ms))
    }
}

impl<T> Spec<T> {
    pub fn env(mut self, alias: &'static str) -> Self {
        self.names.env_alias = Some(alias);
        self
    }

    pub fn flag(mut self, flag: &'static str) -> Self {
        self.names.flag = Some(flag);
        self
    }

    /// Adds the flag that turns a switch off.
    pub fn off_flag(mut self, flag: &'static str) -> Self {
        self.names.off_flag = Some(flag);
        self
    }

    pub fn example(mut self, example: &'static str) -> Self {
        self.names.example = Some(example);
        self
    }
}

// === impl State ===

impl State {
    /// Every environment variable that sets it; the first follows from the key.
    pub fn env_names(&self) -> impl Iterator<Item = String> {
        std::iter::once(env_name(&self.key)).chain(self.names.env_alias.map(str::to_owned))
    }

    /// The section of the file, `None` at the top.
    pub fn section(&self) -> Option<&str> {
        self.key.split_once('.').map(|(section, _)| section)
    }

    /// The example as in a TOML file.
    pub fn example_toml(&self) -> Option<String> {
        let example = self.names.example?;
        let is_number = example.parse::<f64>().is_ok();
        Some(if is_number { example.to_owned() } else { format!("{example:?}") })
    }

    /// True if no layer mentions the setting.
    pub fn is_missing(&self) -> bool {
        self.is_sound && !self.is_given
    }
}

/// The environment variable that follows from a key.
pub fn env_name(key: &str) -> String {
    format!("TIDEGATE_{}", key.to_uppercase().replace('.', "_"))
}

// === impl AnySetting ===

impl dyn AnySetting + '_ {
    /// Takes the value of a layer, or adds an error; returns whether the value was accepted.
    pub fn set(&mut self, raw: Raw<'_>, origin: Origin, errors: &mut ErrorList) -> bool {
        let accepted = self.accept(raw);
        let state = self.state_mut();
        if accepted {
            (state.origin, state.is_given) = (origin, true);
        } else {
            errors.push(state.limits.error(&state.key, raw, &origin));
            state.is_sound = false;
        }
        accepted
    }

    /// The default in words: by role if it depends on that.
    pub fn default_note(&self) -> Option<String> {
        let by_role = |role: &Role| Some(format!("{} {}", name_of(*role), self.preset(*role)?));
        let presets: Vec<_> = Role::ALL.iter().filter_map(by_role).collect();
        match self.shown() {
            _ if !presets.is_empty() => Some(presets.join(", ")),
            Some(toml::Value::String(text)) => Some(text),
            value => value.map(|value| value.to_string()),
        }
    }
}

impl<T: Clone> AnySetting for Setting<T> {
    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn accept(&mut self, raw: Raw<'_>) -> bool {
        (self.spec.kind.accept)(raw).map(|value| self.value = value).is_some()
    }

    fn fill(&mut self, role: Role) {
        if let (Some(preset), false) = (self.spec.by_role, self.state.is_given) {
            (self.value, self.state.origin) = (preset(role), Origin::Preset(name_of(role)));
        }
    }

    fn shown(&self) -> Option<toml::Value> {
        (self.spec.kind.shown)(&self.value)
    }

    fn preset(&self, role: Role) -> Option<toml::Value> {
        (self.spec.kind.shown)(&self.spec.by_role?(role))
    }
}

// === impl Setting ===

impl<T: Clone> Setting<T> {
    pub fn new(
        (prefix, name): (&str, &'static str),
        doc: &'static str,
        spec: Spec<T>,
        origin: &Origin,
    ) -> Self {
        let state = State {
            key: format!("{prefix}{name}"),
            name,
            doc: doc.trim(),
            names: spec.names,
            limits: spec.kind.limits.clone(),
            origin: origin.clone(),
            is_given: false,
            is_sound: true,
        };
        Self { state, value: spec.default.clone(), spec }
    }

    pub fn get(&self) -> T {
        self.value.clone()
    }

    /// An error about the value in force.
    pub fn error(&self, given: impl Into<String>, allowed: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.state.key, &self.state.origin, given, allowed)
    }

    /// The value of a required setting, or an error if it is missing.
    pub fn required(&self, errors: &mut ErrorList) -> Option<T> {
        if self.state.is_missing() {
            errors.push(self.error("nothing", &self.state.limits.allowed));
        }
        self.state.is_given.then(|| self.get())
    }
}
