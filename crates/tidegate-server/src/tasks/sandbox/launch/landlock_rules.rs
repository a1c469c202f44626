use crate::tasks::sandbox::config::Network;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
    path_beneath_rules,
};
use std::collections::BTreeSet;
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

/// Refuses TCP connections of this process and its descendants to these ports, of whatever host. The kernel's
/// rules name ports that are allowed, so all others are: about 65,000 rules, which take about 0.1 s.
pub(super) fn refuse_ports(refused: &BTreeSet<u16>) -> Result<RestrictionStatus, RulesetError> {
    allow_ports((0..=u16::MAX).filter(|port| !refused.contains(port)))
}

/// Allows TCP connections to these ports alone. Fails on a kernel that has no such rules.
pub(super) fn allow_ports(
    ports: impl Iterator<Item = u16>,
) -> Result<RestrictionStatus, RulesetError> {
    let rule = |port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp));
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessNet::ConnectTcp)?
        .create()?
        .add_rules(ports.map(rule))?
        .restrict_self()
}
