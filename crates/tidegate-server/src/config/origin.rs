use std::fmt;

/// Origin of a value, in the order of the layers: a later layer wins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// The preset of a role, or what follows from it.
    Preset(&'static str),
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

// === impl Origin ===

impl Origin {
    /// Returns true if a file, the environment or a flag has set the value.
    #[must_use]
    pub const fn is_explicit(&self) -> bool {
        !matches!(self, Self::Default | Self::Preset(_))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(role) => write!(f, "preset {role}"),
            Self::File { path, line } => write!(f, "file {path}:{line}"),
            Self::Env(name) => write!(f, "env {}", name.escape_debug()),
            Self::Flag(flag) => write!(f, "flag {}", flag.escape_debug()),
        }
    }
}
