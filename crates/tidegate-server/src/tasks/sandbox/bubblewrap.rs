use super::config::Network;
use super::folder::WorkFolder;
use super::launch::LaunchCommand;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The task's working directory inside of the sandbox.
pub(super) const HOME: &str = "/task";
/// Folder of its code.
pub(super) const CODE: &str = "/code";
/// Path of the launcher.
const LAUNCHER: &str = "/tidegate";
/// Capabilities of a root worker's supervisor: to become the task's user, to signal it, and to read its usage. The
/// task itself gets none.
const SUPERVISOR_CAPABILITIES: [&str; 5] =
    ["CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"];
/// Folders that exist empty and read-only, so that a write to them fails with a clear error.
const EMPTY: [&str; 8] = ["/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/var"];

/// Paths of programs, libraries and the files that they read. Not all of `/etc`, which has keys and passwords, and
/// no home folder.
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

/// Arguments of bubblewrap, up to and including the launcher's command.
pub(super) struct Wrap<'a> {
    pub(super) launcher: &'a Path,
    pub(super) folder: &'a WorkFolder,
    /// Readable paths besides [`SYSTEM`].
    pub(super) readable: &'a [PathBuf],
    pub(super) network: Network,
    /// The worker is root, and needs no user namespace to create the others.
    pub(super) root: bool,
}

// === impl Wrap ===

impl Wrap<'_> {
    pub(super) fn args(&self, command: LaunchCommand) -> Vec<OsString> {
        let mut args = Args::default();
        args.add(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]);
        if self.network != Network::Allow {
            args.add(["--unshare-net"]);
        }
        match self.root {
            true => {
                args.add(["--cap-drop", "ALL"]);
                for capability in SUPERVISOR_CAPABILITIES {
                    args.add(["--cap-add", capability]);
                }
            }
            false => args.add(["--unshare-user"]),
        }
        // The task can't signal a supervisor that is process 1, and every process ends with it. Not
        // --die-with-parent: that refers to the thread that started bubblewrap, and a worker's threads come and
        // go. The supervisor sees the worker's end of the socket close instead.
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
        // Folders that bubblewrap creates itself are a tmpfs, which would be writable.
        args.add(["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]);
        args.add(["--", LAUNCHER, "launch", command.name()]);
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

    /// Adds a folder and its parents. Those that bubblewrap creates itself are closed to the task's user.
    fn folder(&mut self, folder: &Path) {
        let above: Vec<&Path> = folder.ancestors().collect();
        for folder in above.into_iter().rev().filter(|folder| *folder != Path::new("/")) {
            if self.folders.insert(folder.to_owned()) {
                self.args.extend(["--dir".into(), folder.into()]);
            }
        }
    }

    fn read_only(&mut self, path: &Path) {
        // Distributions with a merged /usr have links in place of /bin and /lib.
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
