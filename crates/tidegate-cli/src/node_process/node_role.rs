/// Purpose of a node: settings that nobody gives follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// Everything in one process.
    All,
    /// Tasks for workers that dial; no requests to upstreams.
    Manager,
    /// Requests and tasks to managers.
    Gate,
}

// === impl NodeRole ===

impl NodeRole {
    /// Values of settings that no layer gives.
    pub const fn presets(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::All => &[],
            Self::Manager => &[
                ("role", "manager"),
                ("workers.enabled", "true"),
                ("tasks.enabled", "true"),
                ("tasks.slots", "0"),
                ("ingest.enabled", "false"),
            ],
            Self::Gate => &[
                ("tasks.enabled", "false"),
                ("tasks.forwarded", "true"),
                ("ingest.enabled", "false"),
                ("proxy.authorization", "pass"),
            ],
        }
    }

    /// Name in the banner.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "up",
            Self::Manager => "manager",
            Self::Gate => "gate",
        }
    }
}
