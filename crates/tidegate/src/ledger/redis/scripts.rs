use redis::Script;

/// In the order in which `common.lua` names them.
pub(super) const KEYS: [&str; 10] =
    ["slots", "known", "lease", "leases", "held", "place", "places", "line", "fence", "arrival"];

/// One script for each operation: what it does, it does in one step.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) declare: Script,
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    pub(super) withdraw: Script,
    pub(super) reconcile: Script,
    pub(super) latest_fence: Script,
    pub(super) held: Script,
}

// === impl Scripts ===

impl Scripts {
    pub(super) fn new() -> Self {
        let script = |own: &str| Script::new(&[include_str!("common.lua"), own].concat());
        Self {
            declare: script(include_str!("declare.lua")),
            acquire: script(include_str!("acquire.lua")),
            renew: script(include_str!("renew.lua")),
            release: script(include_str!("release.lua")),
            withdraw: script(include_str!("withdraw.lua")),
            reconcile: script(include_str!("reconcile.lua")),
            latest_fence: script(include_str!("latest_fence.lua")),
            held: script(include_str!("held.lua")),
        }
    }
}
