use super::{landlock_rules, seccomp_filter};
use crate::tasks::sandbox::config::Network;
use landlock::{LandlockStatus, RulesetStatus};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;

/// Layers of this machine, found by trying them in a process that ends right after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::tasks::sandbox) struct Probed {
    /// Version of Landlock, or why it is missing.
    pub(in crate::tasks::sandbox) landlock: Result<String, String>,
    /// Error when the system call filter is missing.
    pub(in crate::tasks::sandbox) seccomp: Result<(), String>,
    /// Error when connections can't be refused by their port.
    pub(in crate::tasks::sandbox) ports: Result<(), String>,
}

/// Writes the result as a line of JSON.
pub(super) fn run() -> ExitCode {
    // In the order of a task: system calls of the others are refused after the filter.
    let (landlock, ports) = (try_landlock(), try_ports());
    let probed = Probed { landlock, ports, seccomp: try_seccomp() };
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
            Err("not enabled at boot (lsm=landlock,…)".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => {
            Err("not in this kernel: needs 5.13 or later".to_owned())
        }
        (_, LandlockStatus::Available { effective_abi, .. }) => {
            Ok(format!("ABI {}", effective_abi as i32))
        }
        (status, _) => Ok(format!("{status:?}")),
    }
}

/// Tries the kernel's rules about ports with one of them.
fn try_ports() -> Result<(), String> {
    match landlock_rules::allow_ports(std::iter::once(1)) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("needs Landlock ABI 4, in kernels from 6.7 on: {error}")),
    }
}

fn try_seccomp() -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    seccomp_filter::apply(Network::Deny, false).map_err(|error| error.to_string())
}
