use crate::ask::get;
use crate::fleet::Fleet;
use crate::load::Load;
use crate::{LONGEST, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Tasks by name.
pub type Views = BTreeMap<String, Value>;

/// Looks at all tasks again and again; what is over must stay as it was.
#[derive(Default)]
pub struct Watcher {
    over: Views,
}

// === impl Watcher ===

impl Watcher {
    /// All tasks by a manager's response, if it responds.
    pub fn look(&mut self, door: SocketAddr) -> Option<Views> {
        let views = list(door)?;
        for (id, view) in views.iter().filter(|(_, view)| is_over(view)) {
            assert!(view["ended_ms"].is_u64(), "{view}");
            let before = self.over.entry(id.clone()).or_insert_with(|| view.clone());
            assert_eq!(before, view, "it was over, and changed");
        }
        Some(views)
    }

    /// Waits until all tasks of a load are over, as a manager sees it.
    pub fn until_over(&mut self, door: SocketAddr, load: &Load) -> Views {
        let since = Instant::now();
        loop {
            let views = self.look(door).unwrap_or_default();
            let open: Vec<_> = views.values().filter(|view| !is_over(view)).collect();
            if open.is_empty() && views.len() == load.tasks.len() {
                return views;
            }
            let (known, first) = (views.len(), open.first());
            assert!(since.elapsed() < LONGEST, "{} of {known} don't end: {first:?}", open.len());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The end of every test: all is over once, nothing was started twice, all slots can be used again.
    pub fn judge(mut self, fleet: &Fleet, mut load: Load) -> Views {
        load.finish();
        let doors = fleet.doors();
        let views = self.until_over(doors[0], &load);
        for (nth, _) in fleet.workers.iter().enumerate() {
            fleet.until_idle(nth);
        }
        for task in load.tasks.iter() {
            let view = &views[task["id"].as_str().unwrap()];
            let expected = if task["code"] == "fail" { "failed" } else { "succeeded" };
            assert_eq!(view["status"], expected, "{view}");
            for door in &doors {
                let path = format!("/v1/tasks/{}", view["id"].as_str().unwrap());
                // It may still be on its way back to the store, or to what another has kept there.
                until("every manager knows the end", || match get(*door, &path) {
                    Ok(told) if is_over(&told) => {
                        assert_eq!(told, *view, "one manager tells another thing");
                        true
                    }
                    _ => false,
                });
            }
        }
        (0..doors.len()).for_each(|nth| fleet.until_all_up(nth));
        views
    }
}

/// Each attempt was started at most once, and the last one of each task was.
pub fn judge_starts(fleet: &Fleet, views: &Views) {
    let starts = fleet.target.starts();
    for ((id, attempt), count) in &starts {
        assert_eq!(*count, 1, "attempt {attempt} at {id} was started {count} times");
    }
    for (id, view) in views {
        let last = (id.clone(), view["attempt"].as_u64().unwrap());
        assert!(starts.contains_key(&last), "nobody has started {view}");
    }
}

/// Every manager takes new tasks, and every slot of every worker runs one of them at the same time.
pub fn judge_slots(fleet: &Fleet) {
    for (nth, door) in fleet.doors().into_iter().enumerate() {
        fleet.target.hold();
        let task = |slot: usize| {
            let id = format!("new-{nth}-{slot}");
            json!({ "id": id, "runtime": "any", "code": "work" })
        };
        let mut load = Load::of(&[door], (0..fleet.slots()).map(task).collect());
        load.finish();
        until("every slot is used again", || fleet.target.held() >= fleet.slots());
        fleet.target.let_go();
        for task in load.tasks.iter() {
            let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
            until("a new task succeeds", || {
                get(door, &path).is_ok_and(|view| view["status"] == "succeeded")
            });
        }
    }
}

/// Number of lost attempts.
pub fn losses(views: &Views) -> u64 {
    views.values().map(|view| view["losses"].as_u64().unwrap()).sum()
}

pub fn is_over(view: &Value) -> bool {
    ["succeeded", "failed", "cancelled"].contains(&view["status"].as_str().unwrap())
}

/// All tasks that a manager knows of, each once; `None` when it does not answer.
pub fn list(door: SocketAddr) -> Option<Views> {
    let mut views = Views::new();
    let mut path = "/v1/tasks?limit=500".to_owned();
    loop {
        let page = get(door, &path).ok()?;
        for view in page["tasks"].as_array().unwrap() {
            let id = view["id"].as_str().unwrap().to_owned();
            assert!(views.insert(id, view.clone()).is_none(), "listed twice: {view}");
        }
        let Some(next) = page["next"].as_str() else { return Some(views) };
        path = format!("/v1/tasks?limit=500&after={next}");
    }
}
