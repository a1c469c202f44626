use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Target of the workers' executions: records every start, and can hold executions.
///
/// The code says what becomes of an execution: `work`, `fail once` or `fail`.
#[derive(Clone)]
pub struct Target {
    pub address: SocketAddr,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

#[derive(Default)]
struct Seen {
    /// Starts by task and attempt.
    starts: BTreeMap<(String, u64), u32>,
    holds: bool,
    held: usize,
}

// === impl Target ===

impl Target {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let target = Self { address, seen: Arc::default() };
        let serving = target.clone();
        // Ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream));
            }
        });
        target
    }

    /// From now on nothing ends.
    pub fn hold(&self) {
        self.seen.0.lock().unwrap().holds = true;
    }

    /// Number of held executions.
    pub fn held(&self) -> usize {
        self.seen.0.lock().unwrap().held
    }

    /// Everything goes on.
    pub fn let_go(&self) {
        self.seen.0.lock().unwrap().holds = false;
        self.seen.1.notify_all();
    }

    /// Starts by task and attempt.
    pub fn starts(&self) -> BTreeMap<(String, u64), u32> {
        self.seen.0.lock().unwrap().starts.clone()
    }

    /// Number of started attempts.
    pub fn started(&self) -> usize {
        self.seen.0.lock().unwrap().starts.len()
    }

    /// `None` when the worker is gone.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                let line = line.trim_end().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().ok()?;
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let status = match self.execute(&serde_json::from_slice(&body).ok()?) {
                true => "200 OK",
                false => "500 Internal Server Error",
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nx\n");
            (&stream).write_all(answer.as_bytes()).ok()?;
        }
    }

    /// True for success.
    fn execute(&self, body: &Value) -> bool {
        let id = body["eval_id"].as_str().unwrap().to_owned();
        let mut seen = self.seen.0.lock().unwrap();
        let before = seen.starts.keys().filter(|(task, _)| *task == id).count();
        *seen.starts.entry((id, body["attempt"].as_u64().unwrap())).or_default() += 1;
        drop(seen);
        thread::sleep(Duration::from_millis(10));
        let mut seen = self.seen.0.lock().unwrap();
        seen.held += 1;
        seen = self.seen.1.wait_while(seen, |seen| seen.holds).unwrap();
        seen.held -= 1;
        match body["code"].as_str().unwrap() {
            "work" => true,
            "fail once" => before > 0,
            "fail" => false,
            code => panic!("no such code: {code}"),
        }
    }
}
