use super::plan::{Limits, Plan};
use super::{landlock_rules, seccomp_filter};
use rustix::fs::Mode;
use rustix::process::{self as sys, Resource, Rlimit, Signal};
use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// Open files of one process.
const OPEN_FILES_MAX: u64 = 1024;
/// Default size of a thread's stack.
const STACK_BYTES: u64 = 8 << 20;
/// CPU seconds between SIGXCPU and SIGKILL.
const CPU_GRACE_S: u64 = 2;

/// Drops what the task may not have, and becomes the task. Returns only on failure, and then reports the error to
/// the supervisor over this process's standard input.
pub(super) fn run() -> ExitCode {
    // A copy that closes on exec: the supervisor sees its end when the task begins.
    let control = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let Ok(mut control) = control else { return ExitCode::FAILURE };
    let error = confine(&control);
    // Fails only when the supervisor is gone; then this process ends too.
    let _ = control.write_all(error.to_string().as_bytes());
    ExitCode::FAILURE
}

fn confine(control: &File) -> io::Error {
    let plan = match Plan::read(&mut BufReader::new(control)) {
        Ok(plan) => plan,
        Err(error) => return error,
    };
    let mut command = Command::new(&plan.program);
    command.args(&plan.args).env_clear().envs(&plan.env).current_dir(&plan.folder);
    command.stdin(Stdio::null());
    if let Err((step, error)) = restrict(&plan) {
        return io::Error::new(error.kind(), format!("{step}: {error}"));
    }
    let error = command.exec();
    io::Error::new(error.kind(), format!("{}: {error}", plan.program.display()))
}

fn restrict(plan: &Plan) -> Result<(), (&'static str, io::Error)> {
    let named = |step| move |error: rustix::io::Errno| (step, io::Error::from(error));
    sys::setsid().map_err(named("new session"))?;
    // The supervisor has one thread, so the signal comes when it ends and not before.
    sys::set_parent_process_death_signal(Some(Signal::KILL)).map_err(named("death signal"))?;
    // When the machine runs out of memory, the kernel kills the task and not the worker. Best effort: a machine
    // that refuses this can still run tasks.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    if plan.rlimits {
        set_limits(&plan.limits).map_err(named("limits"))?;
    }
    if let Some(umask) = plan.umask {
        sys::umask(Mode::from_raw_mode(umask));
    }
    rustix::thread::set_no_new_privs(true).map_err(named("no new privileges"))?;
    if plan.landlock {
        let restricted = landlock_rules::restrict(&plan.readable, &plan.writable, plan.network);
        restricted.map_err(|error| ("Landlock", io::Error::other(error)))?;
    }
    if !plan.refused_ports.is_empty() {
        let refused = landlock_rules::refuse_ports(&plan.refused_ports);
        refused.map_err(|error| ("ports of the node", io::Error::other(error)))?;
    }
    if plan.seccomp {
        let guards_ports = !plan.refused_ports.is_empty();
        let applied = seccomp_filter::apply(plan.network, guards_ports);
        applied.map_err(|error| ("seccomp", io::Error::other(error)))?;
    }
    Ok(())
}

fn set_limits(limits: &Limits) -> rustix::io::Result<()> {
    let set = |resource, soft: u64, hard: u64| {
        // A limit above the hard limit of this process would be refused.
        let most = sys::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let rlimit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        sys::setrlimit(resource, rlimit)
    };
    set(Resource::Core, 0, 0)?;
    set(Resource::Nofile, OPEN_FILES_MAX, OPEN_FILES_MAX)?;
    set(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    set(Resource::Cpu, limits.cpu_s, limits.cpu_s.saturating_add(CPU_GRACE_S))?;
    set(Resource::Nproc, limits.processes_of_user, limits.processes_of_user)?;
    // Not the address space: many runtimes reserve far more of it than they use.
    let data_bytes = data_bytes_max(limits);
    set(Resource::Data, data_bytes, data_bytes)
}

/// The kernel's limit on writable memory. The kernel counts mapped pages, the watcher written ones. Threads get
/// stacks that they hardly use, so this adds room for stacks, at most as much as the memory limit itself.
fn data_bytes_max(limits: &Limits) -> u64 {
    let stacks = u64::from(limits.processes).saturating_mul(STACK_BYTES);
    limits.memory_bytes.saturating_add(stacks.min(limits.memory_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_add_at_most_the_memory_limit() {
        let limits = |memory_bytes, processes| Limits {
            memory_bytes,
            processes,
            processes_of_user: 0,
            cpu_s: 0,
            file_bytes: 0,
            files: 0,
        };
        assert_eq!(data_bytes_max(&limits(1 << 30, 2)), (1 << 30) + (16 << 20));
        assert_eq!(data_bytes_max(&limits(1 << 30, 10_000)), 2 << 30);
        assert_eq!(data_bytes_max(&limits(u64::MAX, u32::MAX)), u64::MAX);
    }
}
