use crate::tasks::sandbox::config::Network;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// Bit of the x32 variants of system calls on x86-64.
const X32: i64 = 0x4000_0000;

/// System calls that no task needs: they fail with EPERM.
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

/// System calls that fail with ENOSYS, for which programs have a fallback. `io_uring` makes calls that no filter
/// sees; the others allocate memory that belongs to no process or outlives the task.
const ABSENT: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_mq_open,
];

/// Family of sockets that fall back to TCP.
const AF_SMC: i32 = 43;

/// Applies the filters to this process and its descendants. With `guards_ports`, connections are refused by their
/// port, and every way around that is closed.
pub(super) fn apply(network: Network, guards_ports: bool) -> Result<(), seccompiler::Error> {
    for program in programs(network, guards_ports)? {
        apply_filter(&program)?;
    }
    Ok(())
}

fn programs(network: Network, guards_ports: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let always = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect();
    let errno = |number: i32| SeccompAction::Errno(number.unsigned_abs());
    let mut programs = vec![
        program(always(REFUSED), errno(libc::EPERM))?,
        program(always(ABSENT), errno(libc::ENOSYS))?,
        program(BTreeMap::from([(libc::SYS_clone, new_namespaces()?)]), errno(libc::EPERM))?,
        // Its flags are in memory, which no filter can read. Libraries fall back to `clone`.
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
    if guards_ports {
        programs.push(program(other_protocols()?, errno(libc::EPROTONOSUPPORT))?);
        programs.push(program(fast_open()?, errno(libc::EOPNOTSUPP))?);
    }
    Ok(programs)
}

/// Rules for sockets that reach a TCP port and that Landlock does not take for TCP.
fn other_protocols() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let rule = |argument: u8, value: i32| {
        let (length, value) = (SeccompCmpArgLen::Dword, u64::from(value.unsigned_abs()));
        let equal = SeccompCondition::new(argument, length, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![equal])
    };
    let rules = vec![rule(2, libc::IPPROTO_MPTCP)?, rule(0, AF_SMC)?];
    Ok(BTreeMap::from([(libc::SYS_socket, rules)]))
}

/// Rules for data that opens a connection by itself, which Landlock does not see.
fn fast_open() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let flag = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
    let rule = |argument: u8| {
        let (length, set) = (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag));
        SeccompRule::new(vec![SeccompCondition::new(argument, length, set, flag)?])
    };
    let calls = [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];
    calls.into_iter().map(|(call, argument)| Ok((call, vec![rule(argument)?]))).collect()
}

/// Rules for `clone` into a new namespace. A new user namespace would allow calls that are refused above.
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

/// A filter that applies `action` to calls that match the rules, and allows all others.
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
        for (network, guards_ports, count) in [
            (Network::Allow, false, 4),
            (Network::Allow, true, 6),
            (Network::Fail, false, 5),
            (Network::Deny, false, 5),
        ] {
            let programs = programs(network, guards_ports).unwrap();
            assert_eq!(programs.len(), count);
            assert!(programs.iter().all(|program| !program.is_empty()));
        }
    }
}
