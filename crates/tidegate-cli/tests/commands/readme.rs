//! The tour of the README, as it is written there, on free ports.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, shell, succeeded};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const README: &str = include_str!("../../../../README.md");
/// Command of the tour that starts the node.
const START: &str = "cargo run --release -- up ";

/// The node of the tour. Killed if its test fails.
struct Tour {
    child: Child,
    folder: PathBuf,
    banner: String,
}

/// Commands of each console in the README. A command continues on lines that begin with four spaces.
fn consoles() -> Vec<Vec<String>> {
    let blocks = README.split("```console\n").skip(1);
    let console = |block: &str| {
        let mut commands: Vec<String> = Vec::new();
        let mut continues = false;
        for line in block.lines().take_while(|line| *line != "```") {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push(command.to_owned()),
                (None, Some(last)) if continues && line.starts_with("    ") => {
                    last.push('\n');
                    last.push_str(line);
                }
                _ => {
                    continues = false;
                    continue;
                }
            }
            continues = true;
        }
        commands
    };
    blocks.map(console).filter(|commands| !commands.is_empty()).collect()
}

impl Tour {
    fn start(flags: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("readme-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let free = "127.0.0.1:0";
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .arg("up")
            .args(flags.split(' '))
            .args(["--listen", free, "--admin-listen", free])
            .args(["--frames-listen", free, "--lines-listen", free])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("XDG_STATE_HOME", &folder)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        Self { child, folder, banner }
    }

    /// A command of the tour, with the addresses of this node.
    fn command(&self, line: &str) -> Command {
        let address =
            |name| banner_url(&self.banner, name).trim_start_matches("http://").to_owned();
        let line = line
            .replace("127.0.0.1:8000", &address("clients"))
            .replace(
                "target/release/tidegate send",
                &format!("tidegate send --to {}", address("frames")),
            )
            .replace("target/release/tidegate", "tidegate");
        let mut command = shell(&line, &self.folder);
        command.env("TIDEGATE_LISTEN_ADMIN_ADDRESS", address("operators"));
        command
    }
}

impl Drop for Tour {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn every_command_of_the_tour_works() {
    let mut consoles = consoles().into_iter();
    let start = consoles.next().unwrap();
    let tour = Tour::start(start[0].strip_prefix(START).unwrap());
    let mut ran = 0;
    for commands in consoles {
        // The commands of a console share functions.
        let definitions: Vec<_> = commands.iter().filter(|line| line.contains("() {")).collect();
        for line in commands.iter().filter(|line| !line.contains("() {")) {
            let mut script: String = definitions.iter().map(|it| format!("{it}\n")).collect();
            script.push_str(line);
            let mut command = tour.command(&script);
            ran += 1;
            match line {
                line if line.contains("bytearray") => {
                    let Output { status, stderr, .. } = command.output().unwrap();
                    let stderr = String::from_utf8_lossy(&stderr);
                    assert_eq!(status.code(), Some(1), "{line}: {stderr}");
                    assert!(stderr.contains("memory_limit"), "{line}: {stderr}");
                }
                line if line.contains("send") => assert_eq!(succeeded(&mut command), ""),
                line => {
                    let (out, expected) = (succeeded(&mut command), expected_of(line));
                    assert!(out.contains(expected), "{line}: {out}");
                }
            }
        }
    }
    assert_eq!(ran, 6, "all commands of the tour");
}

/// Text in the output of a command, as the README shows it.
fn expected_of(line: &str) -> &'static str {
    match line {
        line if line.contains("ask") => "HTTP/1.1 ",
        line if line.contains("usage") => "tokens.output    500340",
        line if line.contains("submit") => "hello\n",
        line if line.contains("sim") => "held: all 8 expectations",
        line => panic!("a new command of the tour: {line}"),
    }
}
