use crate::worker::process::Network;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Calls with this bit are the same by another name on x86-64.
const X32: i64 = 0x4000_0000;

/// What no task has a use for, and much of the kernel's surface: refused as if the user were not allowed to.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Answered as if the kernel did not have them, for which programs are prepared. A ring makes calls that no filter
/// sees; the others hold memory that belongs to no process, or that outlives all of them.
const ABSENT: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_mq_open,
];

/// Puts the filters in force for this process and all that come from it.
pub(super) fn apply(network: Network) -> Result<(), seccompiler::Error> {
    for program in programs(network)? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs(network: Network) -> Result<Vec<BpfProgram>, BackendError> {
    let always = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect();
    let errno = |number: i32| SeccompAction::Errno(number.unsigned_abs());
    let mut programs = vec![
        program(always(REFUSED), errno(libc::EPERM))?,
        program(always(ABSENT), errno(libc::ENOSYS))?,
        program(BTreeMap::from([(libc::SYS_clone, new_namespaces()?)]), errno(libc::EPERM))?,
        // Its flags are in memory, where no filter looks. Libraries fall back to the older call.
        program(always(&[libc::SYS_clone3]), errno(libc::ENOSYS))?,
    ];
    let on_socket = match network {
        Network::Allow => None,
        Network::Fail => Some(errno(libc::ENETUNREACH)),
        Network::Deny => Some(SeccompAction::KillProcess),
    };
    if let Some(action) = on_socket {
        let elsewhere = |family: i32| {
            let family = u64::from(family.unsigned_abs());
            let length = SeccompCmpArgLen::Dword;
            SeccompCondition::new(0, length, SeccompCmpOp::Ne, family)
        };
        let rule = || SeccompRule::new(vec![elsewhere(libc::AF_UNIX)?]);
        let calls = [(libc::SYS_socket, vec![rule()?]), (libc::SYS_socketpair, vec![rule()?])];
        programs.push(program(BTreeMap::from(calls), action)?);
    }
    Ok(programs)
}

/// A clone into any new namespace. One with a user of its own would open what is refused above.
fn new_namespaces() -> Result<Vec<SeccompRule>, BackendError> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let rule = |flag: i32| {
        let flag = u64::from(flag.cast_unsigned());
        let set = SeccompCmpOp::MaskedEq(flag);
        SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Qword, set, flag)?])
    };
    flags.into_iter().map(rule).collect()
}

/// What matches gets the action, everything else goes on.
fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    action: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut all = rules.clone();
    if arch == TargetArch::x86_64 {
        all.extend(rules.into_iter().map(|(call, rules)| (call | X32, rules)));
    }
    SeccompFilter::new(all, SeccompAction::Allow, action, arch)?.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_compiles_for_this_machine() {
        for (network, count) in [(Network::Allow, 4), (Network::Fail, 5), (Network::Deny, 5)] {
            let programs = programs(network).unwrap();
            assert_eq!(programs.len(), count);
            assert!(programs.iter().all(|program| !program.is_empty()));
        }
    }
}
