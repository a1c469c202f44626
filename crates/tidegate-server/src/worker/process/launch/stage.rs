use super::{confine, probe, supervise};
use std::process::ExitCode;

/// A part of the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Starts a task, watches it, and ends all of it.
    Supervise,
    /// Gives up what a task may not have, and becomes the task.
    Confine,
    /// Says which layers this machine has.
    Probe,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 3] = [Self::Supervise, Self::Confine, Self::Probe];

    /// What follows `launch` on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervise => "supervise",
            Self::Confine => "confine",
            Self::Probe => "probe",
        }
    }

    /// The stage of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Does it. Of the process that calls it nothing else should be expected afterwards.
    #[must_use]
    pub fn run(self) -> ExitCode {
        match self {
            Self::Supervise => supervise::run(),
            Self::Confine => confine::run(),
            Self::Probe => probe::run(),
        }
    }
}
