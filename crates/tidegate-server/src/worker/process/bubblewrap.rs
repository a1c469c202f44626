use super::config::Network;
use super::folder::WorkFolder;
use super::launch::Stage;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the task starts, as it sees it.
pub(super) const HOME: &str = "/task";
/// Where its code lies.
pub(super) const CODE: &str = "/code";
/// Where the launcher lies.
const LAUNCHER: &str = "/tidegate";
/// What the supervisor of a worker that is root keeps: to become the task's user, to signal it, and to see what it
/// uses although it belongs to another. The task itself gets none.
const KEPT: [&str; 5] =
    ["CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"];
/// There to be found empty and read-only: a write to them should be told from a mistaken path.
const EMPTY: [&str; 8] = ["/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/var"];

/// Programs and libraries, and what they read to work. Not all of `/etc`, where keys and passwords lie, and
/// nothing of anybody's home.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// The arguments of bubblewrap, up to and with the stage of the launcher that it is to start.
pub(super) struct Wrap<'a> {
    pub(super) launcher: &'a Path,
    pub(super) folder: &'a WorkFolder,
    /// Besides [`SYSTEM`].
    pub(super) readable: &'a [PathBuf],
    pub(super) network: Network,
    /// Whether the worker is root, and needs no namespace of users to be allowed the others.
    pub(super) root: bool,
}

impl Wrap<'_> {
    pub(super) fn args(&self, stage: Stage) -> Vec<OsString> {
        let mut args = Args::default();
        args.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
        if self.network != Network::Allow {
            args.add(["--unshare-net"]);
        }
        match self.root {
            true => {
                args.add(["--cap-drop", "ALL"]);
                KEPT.iter().for_each(|capability| args.add(["--cap-add", capability]));
            }
            false => args.add(["--unshare-user"]),
        }
        // As process 1 the supervisor can't be signalled by the task, and everything ends with it. Not
        // --die-with-parent: that means the thread that started bubblewrap, and a worker's threads come and go.
        // The supervisor sees the worker's end of the socket close instead.
        args.add(["--as-pid-1"]);
        for folder in EMPTY {
            args.folder(Path::new(folder));
        }
        for path in SYSTEM.iter().map(Path::new).chain(self.readable.iter().map(PathBuf::as_path)) {
            args.read_only(path);
        }
        args.add(["--proc", "/proc", "--dev", "/dev"]);
        args.bind("--bind", &self.folder.shared(), "/dev/shm");
        args.bind("--bind", &self.folder.temporary(), "/tmp");
        args.bind("--bind", &self.folder.home(), HOME);
        let code = self.folder.code.parent().unwrap_or(&self.folder.code);
        args.bind("--ro-bind", code, CODE);
        args.bind("--ro-bind", self.launcher, LAUNCHER);
        // What bubblewrap itself puts there is memory, and would be writable.
        args.add(["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]);
        args.add(["--", LAUNCHER, "launch", stage.name()]);
        args.args
    }
}

#[derive(Default)]
struct Args {
    args: Vec<OsString>,
    folders: BTreeSet<PathBuf>,
}

impl Args {
    fn add<const N: usize>(&mut self, args: [&str; N]) {
        self.args.extend(args.map(OsString::from));
    }

    fn bind(&mut self, how: &str, from: &Path, to: &str) {
        self.args.extend([how.into(), from.into(), to.into()]);
    }

    /// A folder and those above it. The ones that bubblewrap makes by itself are closed to the task's user.
    fn folder(&mut self, folder: &Path) {
        let above: Vec<&Path> = folder.ancestors().collect();
        for folder in above.into_iter().rev().filter(|folder| *folder != Path::new("/")) {
            if self.folders.insert(folder.to_owned()) {
                self.args.extend(["--dir".into(), folder.into()]);
            }
        }
    }

    fn read_only(&mut self, path: &Path) {
        // Distributions that put all programs below /usr have links where the others were.
        let is_link = path.parent() == Some(Path::new("/"));
        match fs::read_link(path) {
            Ok(target) if is_link => {
                self.args.extend(["--symlink".into(), target.into(), path.into()]);
            }
            _ if path.exists() => {
                path.parent().into_iter().for_each(|folder| self.folder(folder));
                self.args.extend(["--ro-bind".into(), path.into(), path.into()]);
            }
            _ => {}
        }
    }
}
