//! The memory of a process whose clients do not read their responses.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url};
use crate::shared::folder::TempFolder;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const READERS: u64 = 300;

/// Memory of a reader at most, beyond the kernel's.
const READER_KIB_MAX: u64 = 64;

/// More than the kernel takes for a client that does not read.
const RESPONSE: usize = 64 << 20;

/// Only ends a test that has failed.
const LONGEST: Duration = Duration::from_secs(20);

struct Gateway {
    child: Child,
    data: String,
    _folder: TempFolder,
}

// === impl Gateway ===

impl Gateway {
    fn start(upstream: &str) -> Self {
        let folder = TempFolder::new("slow-readers");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["up", "--no-ingest", "--no-tasks", "--limit", "1000", "--upstream", upstream])
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--set", "listen.threads=1", "--set", "admission.global_limit=2000"])
            .args(["--set", "admission.normal_limit=1000"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        let data = banner_url(&banner, "clients").trim_start_matches("http://").to_owned();
        Self { data, child, _folder: folder }
    }

    fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Asks for a response and leaves it, once it has begun.
    fn ask(&self) -> TcpStream {
        let mut tcp = TcpStream::connect(&self.data).unwrap();
        tcp.set_read_timeout(Some(LONGEST)).unwrap();
        tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut begin = [0; 12];
        tcp.read_exact(&mut begin).unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        tcp
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An upstream of large responses, and the pieces that it has written.
fn upstream() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut tcp, count) = (tcp.unwrap(), Arc::clone(&count));
            thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || {
                    static PIECE: [u8; 16 << 10] = [b'x'; 16 << 10];
                    let _ = tcp.read(&mut [0; 4096]);
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {RESPONSE}\r\n\r\n");
                    let mut sent = tcp.write_all(head.as_bytes());
                    while sent.is_ok() {
                        count.fetch_add(1, Ordering::Relaxed);
                        sent = tcp.write_all(&PIECE);
                    }
                })
                .unwrap();
        }
    });
    (address, written)
}

#[test]
fn clients_that_do_not_read_hold_64_kib_each() {
    let (address, written) = upstream();
    let gateway = Gateway::start(&address);
    // What the first of them needs once for all.
    let mut readers = vec![gateway.ask()];
    let before = gateway.resident_kib();
    readers.extend((0..READERS).map(|_| gateway.ask()));
    // The kernel still moves a piece from buffer to buffer now and then.
    let mut seen = 0;
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = written.load(Ordering::Relaxed);
        if now - seen < READERS {
            break;
        }
        seen = now;
    }
    let each = gateway.resident_kib().saturating_sub(before) / READERS;
    println!("{each} KiB for each reader");
    assert!(each <= READER_KIB_MAX, "{each} KiB for each of {READERS} readers");
}
