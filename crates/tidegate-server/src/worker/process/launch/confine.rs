use super::plan::{Limits, Plan};
use super::{landlock_rules, seccomp_filter};
use rustix::process::{self as sys, Resource, Rlimit, Signal};
use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// Files that one process may have open.
const OPEN_FILES_MAX: u64 = 1024;
/// What a thread's stack takes when nobody says otherwise.
const STACK_BYTES: u64 = 8 << 20;
/// After the signal that says so, a process that goes on is killed.
const CPU_GRACE_S: u64 = 2;

/// Gives up what the task may not have, and becomes the task. Returns only when that failed; the supervisor is
/// told why over this process's standard input.
pub(super) fn run() -> ExitCode {
    // A copy that closes when the task begins: its end is how the supervisor knows.
    let control = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let Ok(mut control) = control else { return ExitCode::FAILURE };
    let wrong = confine(&control);
    // When the supervisor is gone, so will this process be in a moment.
    let _ = control.write_all(wrong.to_string().as_bytes());
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
    if let Err((what, error)) = give_up(&plan) {
        return io::Error::new(error.kind(), format!("{what}: {error}"));
    }
    let error = command.exec();
    io::Error::new(error.kind(), format!("{}: {error}", plan.program.display()))
}

fn give_up(plan: &Plan) -> Result<(), (&'static str, io::Error)> {
    let named = |what| move |error: rustix::io::Errno| (what, io::Error::from(error));
    sys::setsid().map_err(named("a session of its own"))?;
    // The supervisor's threads are one, so this comes when it ends and not before.
    sys::set_parent_process_death_signal(Some(Signal::KILL)).map_err(named("the last signal"))?;
    // When the machine runs out of memory after all, it is the task that goes, and not the worker. A machine that
    // does not let itself be told is no reason not to run it.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    if plan.rlimits {
        set_limits(&plan.limits).map_err(named("limits"))?;
    }
    rustix::thread::set_no_new_privs(true).map_err(named("no new privileges"))?;
    if plan.landlock {
        let done = landlock_rules::restrict(&plan.readable, &plan.writable, plan.network);
        done.map_err(|error| ("Landlock", io::Error::other(error)))?;
    }
    if plan.seccomp {
        let done = seccomp_filter::apply(plan.network);
        done.map_err(|error| ("seccomp", io::Error::other(error)))?;
    }
    Ok(())
}

fn set_limits(limits: &Limits) -> rustix::io::Result<()> {
    let set = |resource, soft: u64, hard: u64| {
        // Nobody may raise what was given less of.
        let most = sys::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let rlimit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
        sys::setrlimit(resource, rlimit)
    };
    set(Resource::Core, 0, 0)?;
    set(Resource::Nofile, OPEN_FILES_MAX, OPEN_FILES_MAX)?;
    set(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    set(Resource::Cpu, limits.cpu_s, limits.cpu_s.saturating_add(CPU_GRACE_S))?;
    set(Resource::Nproc, limits.processes_of_user, limits.processes_of_user)?;
    // Not the address space: many runtimes reserve far more of it than they ever use.
    let data_bytes = data_bytes_max(limits);
    set(Resource::Data, data_bytes, data_bytes)
}

/// The kernel counts what a process could write to, the watcher what it has written. Threads get stacks that they
/// hardly use, so the kernel's limit has room for those, though never for more than the memory itself.
fn data_bytes_max(limits: &Limits) -> u64 {
    let stacks = u64::from(limits.processes).saturating_mul(STACK_BYTES);
    limits.memory_bytes.saturating_add(stacks.min(limits.memory_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_stacks_but_not_for_twice_the_memory() {
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
