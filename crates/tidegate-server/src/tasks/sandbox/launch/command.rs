/// Command of the launcher: the word after `tidegate launch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchCommand {
    /// Starts a task, watches it, and ends all of its processes.
    Supervise,
    /// Drops what a task may not have, and becomes the task.
    Confine,
    /// Reports which layers this machine has.
    Probe,
}

// === impl LaunchCommand ===

impl LaunchCommand {
    /// Every command.
    pub const ALL: [Self; 3] = [Self::Supervise, Self::Confine, Self::Probe];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Supervise => "supervise",
            Self::Confine => "confine",
            Self::Probe => "probe",
        }
    }

    /// The command of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}
