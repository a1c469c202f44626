use super::{landlock_rules, seccomp_filter};
use crate::worker::process::Network;
use landlock::{LandlockStatus, RulesetStatus};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// What this machine has, found out by trying it in a process that ends right after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::worker::process) struct Probed {
    /// What Landlock there is, or why there is none.
    pub(in crate::worker::process) landlock: Result<String, String>,
    /// Why there is no filter of system calls.
    pub(in crate::worker::process) seccomp: Result<(), String>,
}

/// Writes what it found as a line of JSON.
pub(super) fn run() -> ExitCode {
    let probed = Probed { landlock: try_landlock(), seccomp: try_seccomp() };
    match serde_json::to_string(&probed) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_landlock() -> Result<String, String> {
    let everything = [PathBuf::from("/")];
    let status = landlock_rules::restrict(&everything, &[], Network::Deny);
    let status = status.map_err(|error| error.to_string())?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("the kernel has it, but it was not turned on at boot (lsm=landlock,…)".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => {
            Err("the kernel has none: 5.13 or later does".to_owned())
        }
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(format!("ABI {}", effective_abi as i32))
        }
        (status, _) => Ok(format!("{status:?}")),
    }
}

fn try_seccomp() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    seccomp_filter::apply(Network::Deny).map_err(|error| error.to_string())
}
