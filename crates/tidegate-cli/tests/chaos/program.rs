use crate::LONGEST;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Above those of known services, and below those that Linux gives to whoever asks for any.
const PORTS: Range<u16> = 12_000..32_000;
/// Ports that the tests of one process need, with a reserve.
const PORTS_EACH: u32 = 100;

/// A `tidegate` that can be killed and started again, always on the same address. Killed when its test ends.
pub struct Program {
    args: Vec<String>,
    folder: PathBuf,
    log: PathBuf,
    pub address: SocketAddr,
    child: Option<Child>,
}

// === impl Program ===

impl Program {
    /// Starts one that serves at that address when it has said its banner.
    pub fn start(folder: &Path, name: &str, address: SocketAddr, args: Vec<String>) -> Self {
        let log = folder.join(format!("{name}.log"));
        let mut program = Self { args, folder: folder.to_owned(), log, address, child: None };
        program.run();
        program
    }

    /// Starts it, or starts it again. Its port may be somebody's for a moment.
    pub fn run(&mut self) {
        let since = Instant::now();
        while !self.comes_up() {
            assert!(since.elapsed() < LONGEST, "{:?} does not start:\n{}", self.args, self.log());
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn comes_up(&mut self) -> bool {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(&self.args)
            .env("XDG_STATE_HOME", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let banner = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let up = banner.into_iter().any(|line| line.contains("Ctrl-C"));
        self.child = Some(child);
        if !up {
            self.kill();
        }
        up
    }

    /// As `kill -9` does, and it is gone when this returns.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to shut down, and waits until it has.
    pub fn terminate(&mut self) {
        self.signal("-TERM");
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
    }

    /// Stops it as it stands; it is still there, and does nothing.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on as if no time had passed.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let last = log.lines().rev().take(30).collect::<Vec<_>>();
            let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            eprintln!("--- the last of {}:\n{last}", self.log.display());
        }
    }
}

/// An address that is free, and that nobody else is given: neither a later call of this, nor another process of
/// tests, as a rule, nor by the system to whoever asks it for any port, which are higher. So it can be had again
/// after its program was killed.
pub fn free() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Each process begins at another place: few need more than these.
    let first = std::process::id().wrapping_mul(PORTS_EACH);
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(nth < PORTS.len() as u32, "no port is free");
        let at = first.wrapping_add(nth) as usize % PORTS.len();
        let address = SocketAddr::from(([127, 0, 0, 1], PORTS.start + at as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
