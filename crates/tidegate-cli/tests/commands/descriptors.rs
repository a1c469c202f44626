//! A process without file descriptors: health answers on both ports whatever has used them up.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url};
use crate::shared::folder::TempFolder;
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Descriptors of the process, some of which are its own.
const LIMIT: usize = 96;

/// Those that come and go with the connections that have the last ones, four at each port.
const SPARE: usize = 8;

/// Only ends a test that has failed.
const LONGEST: Duration = Duration::from_secs(30);

struct Gateway {
    child: Child,
    data: String,
    admin: String,
    _folder: TempFolder,
}

// === impl Gateway ===

impl Gateway {
    fn start() -> Self {
        let folder = TempFolder::new("descriptors");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let up = "up --no-ingest --no-tasks --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 \
                  --upstream http://127.0.0.1:1 --set listen.threads=1";
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -n {LIMIT} && exec \"$0\" {up}")])
            .arg(env!("CARGO_BIN_EXE_tidegate"))
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        let host = |name| banner_url(&banner, name).trim_start_matches("http://").to_owned();
        Self { data: host("clients"), admin: host("operators"), child, _folder: folder }
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    fn is_exhausted(&self) -> bool {
        self.descriptors() > LIMIT - SPARE
    }

    /// Opens connections that say nothing, and more wait to be accepted, until the process has no descriptor left.
    fn exhaust(&self, address: &str) -> Vec<TcpStream> {
        let silent: Vec<_> = (0..2 * LIMIT).map(|_| TcpStream::connect(address).unwrap()).collect();
        for _ in 0..600 {
            if self.is_exhausted() {
                return silent;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{} of {LIMIT} descriptors are open", self.descriptors());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status of a request on a connection of its own.
fn status(address: &str, path: &str) -> String {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(LONGEST)).unwrap();
    write!(tcp, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let read = tcp.read_to_string(&mut answer);
    let status = answer.split(' ').nth(1).map(str::to_owned);
    status.unwrap_or_else(|| panic!("{path} at {address}: {read:?} {answer:?}"))
}

#[test]
fn health_answers_on_both_ports_while_no_descriptor_is_left() {
    let gateway = Gateway::start();
    let silent = gateway.exhaust(&gateway.data);
    for round in 0..10 {
        for address in [&gateway.data, &gateway.admin] {
            assert_eq!(status(address, "/health/live"), "200", "{address} in round {round}");
        }
        // Others that say nothing do not keep what is held back for health.
        let _more: Vec<_> = (0..10).map(|_| TcpStream::connect(&gateway.data).unwrap()).collect();
    }
    assert!(gateway.is_exhausted());
    // A descriptor that happens to be free at that moment is used.
    let refused = (0..20).any(|_| status(&gateway.data, "/") == "503");
    assert!(refused, "there is none for an upstream");
    drop(silent);
    for _ in 0..600 {
        // Requests are sent to the upstream again, where nobody listens.
        if status(&gateway.data, "/") == "502" {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("requests are refused for ever");
}

#[test]
fn silent_connections_to_the_admin_port_do_not_keep_its_last_descriptors() {
    let gateway = Gateway::start();
    let _silent = gateway.exhaust(&gateway.data);
    for _ in 0..3 {
        let _more: Vec<_> = (0..20).map(|_| TcpStream::connect(&gateway.admin).unwrap()).collect();
        assert_eq!(status(&gateway.admin, "/health/live"), "200");
        assert_eq!(status(&gateway.admin, "/metrics"), "200");
        assert!(gateway.is_exhausted());
    }
}
