use crate::worker::process::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, RestrictionStatus,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// The rules that are asked for. A kernel that knows fewer enforces those that it knows.
const RULES: ABI = ABI::V6;
/// Devices that keep nothing of what is written to them, and that programs expect to be there.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
/// What programs read about themselves and the machine.
const SELF: &str = "/proc";

/// Lets this process and all that come from it read only these, write only those, and signal only each other.
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
    // A path that is not there is left out: there is nothing to be read, and what comes to be there later is not
    // the task's.
    ruleset
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(RULES)))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::from_file(RULES)))?
        .restrict_self()
}
