use crate::tasks::sandbox::config::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, RestrictionStatus,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// Landlock ABI requested. An older kernel enforces the rules that it knows.
const RULES: ABI = ABI::V6;
/// Devices that store nothing, and that programs expect.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// Information about processes and the machine that programs read.
const SELF: &str = "/proc";

/// Restricts this process and its descendants to reading and writing these paths and to signalling each other.
pub(super) fn restrict(
    readable: &[PathBuf],
    writable: &[PathBuf],
    network: Network,
) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?;
    if network != Network::Allow {
        ruleset = ruleset.handle_access(AccessNet::from_all(RULES))?;
    }
    let read = AccessFs::from_read(RULES);
    let readable = readable.iter().map(PathBuf::as_path).chain([Path::new(SELF)]);
    // A missing path is left out: there is nothing to read, and a later file at that path is not for the task.
    ruleset
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(RULES)))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(RULES)))?
        .restrict_self()
}
