//! A real PostgreSQL for one test process, on a free port of the loopback interface.
//!
//! It ends with whoever started it, however that ends: a shell beside it reads a pipe, and stops the server when
//! the other end of the pipe is gone.

use super::folder::TempFolder;
use super::port::quiet_port;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Stands in every address, so that a test can look for it where it must not be.
pub const PASSWORD: &str = "s3cr3t-of-the-test";

const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(20);

/// What servers refuse to run as.
const ROOT: u32 = 0;

/// Runs the server until its input ends, then stops it at once. Whoever was killed can't remove the folder.
const KEEPER: &str = r#"
"$@" & server=$!
cat >/dev/null
kill -INT $server
wait $server
[ -d /proc/$PPID ] || rm -rf "$0"
"#;

static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

pub struct Postgres {
    folder: TempFolder,
    programs: PathBuf,
    settings: Vec<String>,
    port: u16,
    keeper: Option<Child>,
}

impl Postgres {
    /// One server for all tests that run at the same time. It syncs nothing: those tests are not about that.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(&["fsync=off", "synchronous_commit=off"]));
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server of a test's own, with `name=value` settings.
    pub fn start(settings: &[&str]) -> Self {
        let folder = TempFolder::new("postgres");
        let programs = find_programs();
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = Self { folder, programs, settings, port: 0, keeper: None };
        server.create();
        // Another process may take a free port before the server does.
        for _ in 0..3 {
            server.port = quiet_port();
            if server.run() {
                return server;
            }
        }
        panic!("PostgreSQL does not start:\n{}", server.log());
    }

    pub fn url(&self, parameters: &str) -> String {
        let Self { port, .. } = self;
        format!("postgres://tester:{PASSWORD}@127.0.0.1:{port}/postgres?{parameters}")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn stop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        drop(keeper.stdin.take());
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if keeper.try_wait().ok().flatten().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = keeper.kill();
        eprintln!("PostgreSQL did not stop in {} s", STOP_MAX.as_secs());
    }

    /// Stops it as a crash does: nothing more is written.
    pub fn crash(&mut self) {
        let pid_file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid_file.lines().next().unwrap();
        assert_worked(&Command::new("kill").args(["-QUIT", pid]).output().unwrap());
        let deadline = Instant::now() + STOP_MAX;
        while self.data().join("postmaster.pid").exists() {
            assert!(Instant::now() < deadline, "PostgreSQL does not crash");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop();
    }

    /// Starts it again on the same port; false when it can't.
    pub fn run(&mut self) -> bool {
        let log = fs::File::create(self.folder().join("log")).unwrap();
        let mut command = self.command("sh");
        command.args(["-c", KEEPER]).arg(self.folder()).arg(self.programs.join("postgres"));
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder());
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let errors = log.try_clone().unwrap();
        command.stdin(Stdio::piped()).stdout(log).stderr(errors);
        self.keeper = Some(command.spawn().unwrap());
        let deadline = Instant::now() + START_MAX;
        while Instant::now() < deadline {
            let log = self.log();
            if log.contains("ready to accept connections") && self.answers() {
                return true;
            }
            // Who asks it too early is told so, by what looks like an error of its own.
            let fatal =
                |line: &str| line.contains("FATAL") && !line.contains("the database system");
            if log.lines().any(fatal) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.stop();
        false
    }

    fn answers(&self) -> bool {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    fn create(&self) {
        let secret = self.folder().join("secret");
        fs::File::create(&secret).unwrap().write_all(PASSWORD.as_bytes()).unwrap();
        if let Some(user) = stand_in() {
            for path in [self.folder(), &secret] {
                chown(path, Some(user.uid), Some(user.gid)).unwrap();
            }
        }
        fs::set_permissions(self.folder(), fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = self.command(self.programs.join("initdb"));
        command.args([
            "--no-sync",
            "--no-instructions",
            "-E",
            "UTF8",
            "--locale=C",
            "-U",
            "tester",
        ]);
        command.args(["-A", "scram-sha-256", "--pwfile"]).arg(&secret);
        assert_worked(&command.arg("-D").arg(self.data()).output().unwrap());
    }

    /// A program as somebody whom PostgreSQL accepts.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = match stand_in() {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
                command.args(["--clear-groups", "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(self.folder()).env("LC_ALL", "C");
        command
    }

    /// Gives a file to whoever servers run as, readable by nobody else.
    pub fn give_to_server(path: &Path) {
        if let Some(user) = stand_in() {
            chown(path, Some(user.uid), Some(user.gid)).unwrap();
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

struct User {
    uid: u32,
    gid: u32,
}

/// Root may not run PostgreSQL: then a system user does.
fn stand_in() -> Option<User> {
    // Our own files belong to whom we run as.
    if fs::metadata("/proc/self").unwrap().uid() != ROOT {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let user = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2).map_while(|field| field.parse().ok());
        Some(User { uid: fields.next()?, gid: fields.next()? })
    };
    let found = user("postgres").or_else(|| user("nobody"));
    Some(
        found.expect(
            "PostgreSQL does not run as root, and there is neither a user postgres nor nobody",
        ),
    )
}

fn find_programs() -> PathBuf {
    let mut folders = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    // Debian keeps each version's programs apart, and off the PATH.
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<_> =
            versions.flatten().map(|entry| entry.path().join("bin")).collect();
        versions.sort();
        folders.extend(versions.into_iter().rev());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let complete =
        |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    folders.into_iter().find(complete).unwrap_or_else(|| {
        panic!("PostgreSQL is missing: run scripts/setup, or apt-get install postgresql")
    })
}

fn assert_worked(output: &Output) {
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}
