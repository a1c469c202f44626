//! A real Redis, or a Valkey, for one test process, on a free port of the loopback interface.
//!
//! It ends with whoever started it, however that ends: a shell beside it reads a pipe, and kills the server when
//! the other end of the pipe is gone.

use super::folder::TempFolder;
use super::port::quiet_port;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Stands in every address, so that a test can look for it where it must not be.
pub const PASSWORD: &str = "s3cr3t-of-the-test";

const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(20);

/// Runs the server until its input ends, then kills it, also when it was stopped. Whoever was killed can't remove
/// the folder.
const KEEPER: &str = r#"
"$@" & server=$!
echo $server >"$0/pid"
cat >/dev/null
kill -KILL $server
wait $server
[ -d /proc/$PPID ] || rm -rf "$0"
"#;

static SHARED: Mutex<Weak<Redis>> = Mutex::new(Weak::new());

pub struct Redis {
    folder: TempFolder,
    settings: Vec<String>,
    port: u16,
    keeper: Option<Child>,
}

impl Redis {
    /// One server for all tests that run at the same time.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(&[]));
        *shared = Arc::downgrade(&server);
        server
    }

    /// A server of a test's own, with more words on its command line. Without any it keeps nothing on disk.
    pub fn start(settings: &[&str]) -> Self {
        let folder = TempFolder::new("redis");
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = Self { folder, settings, port: 0, keeper: None };
        // Another process may take a free port before the server does.
        for _ in 0..3 {
            server.port = quiet_port();
            if server.run() {
                return server;
            }
        }
        panic!("Redis does not start:\n{}", server.log());
    }

    pub fn url(&self, parameters: &str) -> String {
        format!("redis://:{PASSWORD}@127.0.0.1:{}/0?{parameters}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts it, or starts it again on the same port; false when it can't.
    pub fn run(&mut self) -> bool {
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let _ = fs::remove_file(self.folder.path().join("pid"));
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER]).arg(self.folder.path()).arg(find_program());
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--requirepass", PASSWORD, "--dir"]).arg(self.folder.path());
        command.args(&self.settings).current_dir(self.folder.path());
        let errors = log.try_clone().unwrap();
        command.stdin(Stdio::piped()).stdout(log).stderr(errors);
        self.keeper = Some(command.spawn().unwrap());
        let deadline = Instant::now() + START_MAX;
        while Instant::now() < deadline {
            if self.ask("PING").is_some_and(|answer| answer.contains("+PONG")) {
                return true;
            }
            if self.keeper.as_mut().unwrap().try_wait().unwrap().is_some()
                || self.log().contains("Failed listening")
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.stop();
        false
    }

    pub fn stop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else { return };
        drop(keeper.stdin.take());
        let deadline = Instant::now() + STOP_MAX;
        while Instant::now() < deadline {
            if keeper.try_wait().ok().flatten().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = keeper.kill();
        eprintln!("Redis did not stop in {} s", STOP_MAX.as_secs());
    }

    /// Ends it as `kill -9` does.
    pub fn crash(&mut self) {
        self.signal("-KILL");
        self.stop();
    }

    /// Sends it a signal, such as `-STOP`.
    pub fn signal(&self, signal: &str) {
        let pid = fs::read_to_string(self.folder.path().join("pid")).unwrap();
        let status = Command::new("kill").args([signal, pid.trim()]).status().unwrap();
        assert!(status.success());
    }

    /// What it answers to a command, in its own words.
    pub fn command(&self, command: &str) -> String {
        self.ask(command).expect("Redis does not answer")
    }

    fn ask(&self, command: &str) -> Option<String> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "AUTH {PASSWORD}\r\n{command}\r\nQUIT\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.strip_prefix("+OK\r\n")?.strip_suffix("+OK\r\n")?.to_owned())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn find_program() -> &'static str {
    let there = |program: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    ["redis-server", "valkey-server"]
        .into_iter()
        .find(there)
        .expect("Redis is missing: run scripts/setup, or apt-get install redis-server")
}
