use crate::LONGEST;
use crate::ask::ask;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients at once.
const CLIENTS: usize = 4;

/// Clients that submit tasks and repeat submissions without an acknowledgement.
pub struct Load {
    pub tasks: Arc<Vec<Value>>,
    acknowledged: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<()>>,
}

// === impl Load ===

impl Load {
    /// A mix for the target: every priority, some that fail once, some that fail for good.
    pub fn mixed(doors: &[SocketAddr], count: usize) -> Self {
        let task = |nth: usize| {
            let (code, retries) = match nth % 20 {
                7 => ("fail once", 2),
                13 => ("fail", 1),
                _ => ("work", u64::from(nth.is_multiple_of(2))),
            };
            let priority = ["normal", "high", "low"][nth % 3];
            json!({ "id": format!("t-{nth}"), "runtime": "any", "code": code,
                "priority": priority, "retries": retries })
        };
        Self::of(doors, (0..count).map(task).collect())
    }

    pub fn of(doors: &[SocketAddr], tasks: Vec<Value>) -> Self {
        let (tasks, acknowledged) = (Arc::new(tasks), Arc::new(AtomicUsize::new(0)));
        let client = |client: usize| {
            let (doors, tasks, count) =
                (doors.to_vec(), Arc::clone(&tasks), Arc::clone(&acknowledged));
            thread::spawn(move || {
                // Each stays with the door that answered last.
                let mut door = client;
                for task in tasks.iter().skip(client).step_by(CLIENTS) {
                    hand_in(&doors, &mut door, task);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let clients = (0..CLIENTS).map(client).collect();
        Self { tasks, acknowledged, clients }
    }

    /// All of them as one.
    pub fn all(loads: Vec<Self>) -> Self {
        let mut all = Self { tasks: Arc::default(), acknowledged: Arc::default(), clients: vec![] };
        let mut tasks = Vec::new();
        for mut load in loads {
            load.finish();
            tasks.extend(load.tasks.iter().cloned());
        }
        all.acknowledged.store(tasks.len(), Ordering::Relaxed);
        all.tasks = Arc::new(tasks);
        all
    }

    /// Acknowledged submissions so far.
    pub fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Waits until all are.
    pub fn finish(&mut self) {
        for client in self.clients.drain(..) {
            client.join().unwrap();
        }
    }
}

/// Until it is acknowledged: by the next door when one does not, always under the same name.
fn hand_in(doors: &[SocketAddr], door: &mut usize, task: &Value) {
    let since = Instant::now();
    let mut repeated = false;
    loop {
        match ask(doors[*door % doors.len()], "POST", "/v1/tasks", Some(task)) {
            Ok((201, view)) => return assert_eq!(view["id"], task["id"]),
            Ok((200, view)) => {
                assert!(repeated, "it was there before it was handed in: {view}");
                return assert_eq!(view["id"], task["id"]);
            }
            Ok((429 | 500.., _)) | Err(_) => *door += 1,
            Ok((status, why)) => panic!("{status}: {why}"),
        }
        repeated = true;
        assert!(since.elapsed() < LONGEST, "nobody takes {task}");
        thread::sleep(Duration::from_millis(50));
    }
}
