use std::fmt;
use tidegate::admission::Role;

/// Where a value comes from. The order is the order of the layers: later wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// The preset of a role, or what follows from it.
    Preset(Preset),
    /// A configuration file.
    File {
        /// The file's path as it was given.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable of this name.
    Env(String),
    /// A flag as it was typed, such as `--high-limit`.
    Flag(String),
}

/// The role whose preset applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preset(&'static str);

// === impl Origin ===

impl Origin {
    /// Whether somebody said it: in a file, the environment or a flag.
    #[must_use]
    pub const fn is_explicit(&self) -> bool {
        !matches!(self, Self::Default | Self::Preset(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(Preset(role)) => write!(f, "preset {role}"),
            Self::File { path, line } => write!(f, "file {path}:{line}"),
            Self::Env(name) => write!(f, "env {}", name.escape_debug()),
            Self::Flag(flag) => write!(f, "flag {}", flag.escape_debug()),
        }
    }
}

// === impl Preset ===

impl Preset {
    pub(super) fn of(role: Role) -> Self {
        Self(super::choice::name_of(role))
    }
}
