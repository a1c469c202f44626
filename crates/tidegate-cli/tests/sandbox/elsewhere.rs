//! A peer of tasks that is no part of the node.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A listener of another process, which tells of each connection.
pub struct Elsewhere {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub port: u16,
}

impl Elsewhere {
    pub fn start() -> Self {
        let code = "import socket; s = socket.create_server(('127.0.0.1', 0))\n\
                    print(s.getsockname()[1], flush=True)\n\
                    while s.accept(): print('came', flush=True)";
        let mut child =
            Command::new("python3").args(["-c", code]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Self { child, lines, port }
    }

    /// Waits for its next line.
    pub fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
