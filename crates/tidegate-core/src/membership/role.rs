use std::fmt;
use std::str::FromStr;

/// Role of a member of a cluster, as its certificate has it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum MemberRole {
    /// Accepts tasks and dispatches them.
    Manager,
    /// Executes tasks.
    Worker,
    /// Forwards requests and tasks to managers.
    Gate,
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRole(String);

// === impl MemberRole ===

impl MemberRole {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Manager, Self::Worker, Self::Gate];

    /// Name in commands, certificates and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Worker => "worker",
            Self::Gate => "gate",
        }
    }

    /// Number in packets.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Manager => 1,
            Self::Worker => 2,
            Self::Gate => 3,
        }
    }

    /// Role of a number in packets.
    #[must_use]
    pub fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }
}

impl fmt::Display for MemberRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemberRole {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let role = Self::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or_else(|| UnknownRole(text.chars().take(64).collect()))
    }
}

// === impl UnknownRole ===

impl fmt::Display for UnknownRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no role of a node; expected manager, worker or gate", self.0)
    }
}

impl std::error::Error for UnknownRole {}
