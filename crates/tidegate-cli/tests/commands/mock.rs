//! `tidegate mock` as a process: started, asked with curl, and ended by signals.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, curl, refused, signal};
use std::io::BufReader;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// A running `tidegate mock` on a free port. Killed if its test fails.
struct Mock {
    child: Child,
    banner: String,
    url: String,
}

impl Mock {
    fn start(args: &[&str]) -> Self {
        let mut child = command(&["--listen", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let banner = banner(&mut out);
        let url = banner_url(&banner, "clients");
        Self { child, banner, url }
    }

    fn ends_by(mut self, name: &str) -> Option<i32> {
        signal(&self.child, name);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("mock").args(args).env_clear();
    command
}

#[test]
fn everything_that_it_says_to_try_works_and_signals_end_it() {
    for signal in ["-INT", "-TERM"] {
        let mock = Mock::start(&["--model", "it's \"mine\"", "--name", "here"]);
        let lines: Vec<_> =
            mock.banner.lines().filter(|line| line.trim_start().starts_with("curl")).collect();
        assert_eq!(lines.len(), 2, "{}", mock.banner);
        let said: Vec<_> = lines
            .iter()
            .map(|line| Command::new("sh").args(["-c", line.trim()]).output().unwrap().stdout)
            .map(|stdout| String::from_utf8(stdout).unwrap())
            .collect();
        assert!(said[0].ends_with("data: [DONE]\n\n"), "{}", said[0]);
        assert!(said[1].contains("vllm:num_requests_running"), "{}", said[1]);
        assert!(curl(&["-i", &mock.url]).contains("x-tidegate-mock: here"));
        assert_eq!(mock.ends_by(signal), Some(0));
    }
}

#[test]
fn the_flags_reach_the_server() {
    let mock =
        Mock::start(&["--ranks", "2", "--kv-blocks", "64", "--metrics", "tidegate", "--faults"]);
    let page = curl(&[&format!("{}/metrics", mock.url)]);
    assert!(page.contains("tidegate_upstream_kv_total_blocks{rank=\"1\"} 64\n"), "{page}");
    assert!(mock.banner.contains("/mock/fault"), "{}", mock.banner);
    let fault = curl(&["-d", "{\"frozen\": true}", &format!("{}/mock/fault", mock.url)]);
    assert!(fault.contains("\"frozen\":true"), "{fault}");
}

#[test]
fn wrong_flags_are_told_all_at_once_with_2() {
    let args = ["--ranks", "0", "--decode-ms-per-token", "-1", "--name", "a b", "--model", ""];
    let says =
        ["4 errors", "--ranks: given 0; allowed: 1 … 64 ranks", "--decode-ms", "--name", "--model"];
    refused(&command(&args).output().unwrap(), 2, &says);
    let elsewhere = command(&["--listen", "0.0.0.0:0"]).output().unwrap();
    refused(&elsewhere, 2, &["--listen", "loopback"]);
    refused(&command(&["--metrics", "tritn"]).output().unwrap(), 2, &["trtllm", "vllm"]);
    refused(&command(&["--seed", "many"]).output().unwrap(), 2, &["--seed"]);
}

#[test]
fn a_port_that_is_taken_is_1() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let output = command(&["--listen", &taken]).output().unwrap();
    refused(&output, 1, &[&format!("can't listen on {taken}"), "--listen"]);
}

#[test]
fn help_says_what_there_is() {
    let help = command(&["--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for part in ["--decode-ms-per-token", "--metrics", "llamacpp", "Examples:", "127.0.0.1:9000"] {
        assert!(help.contains(part), "{part:?} is not in: {help}");
    }
}
