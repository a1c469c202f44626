//! Workers that are killed, or stopped for longer than a lease.

use crate::ask::get;
use crate::fleet::{Fleet, Plan, SLOTS};
use crate::load::Load;
use crate::until;
use crate::verdict::{Watcher, judge_slots, judge_starts, losses};
use serde_json::json;

#[test]
fn a_worker_is_killed_and_comes_back() {
    let mut fleet = Fleet::start(&Plan::default());
    let load = Load::mixed(&fleet.doors(), 300);
    fleet.hold_every_slot();
    fleet.workers[0].kill();
    fleet.target.let_go();
    fleet.workers[0].run();
    let views = Watcher::default().judge(&fleet, load);
    assert!(losses(&views) >= SLOTS as u64, "what ran there");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// The worker does not know that its lease expired and that others have run its tasks since.
#[test]
fn a_stopped_worker_goes_on_and_finishes_nothing_twice() {
    let fleet = Fleet::start(&Plan::default());
    let load = Load::mixed(&fleet.doors(), 200);
    let (door, mut watcher) = (fleet.doors()[0], Watcher::default());
    fleet.hold_every_slot();
    fleet.workers[0].stop();
    fleet.target.let_go();
    until("what it had is lost", || {
        watcher.look(door).is_some_and(|views| losses(&views) >= SLOTS as u64)
    });
    fleet.workers[0].go_on();
    let views = watcher.judge(&fleet, load);
    assert!(losses(&views) >= SLOTS as u64, "what ran there");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// Nobody is left who could run anything, and then all are.
#[test]
fn all_workers_are_killed_at_once() {
    let mut fleet = Fleet::start(&Plan::default());
    let load = Load::mixed(&fleet.doors(), 200);
    fleet.hold_every_slot();
    fleet.workers.iter_mut().for_each(|worker| worker.kill());
    fleet.target.let_go();
    until("everything is handed in without a worker", || load.acknowledged() == 200);
    fleet.workers.iter_mut().for_each(|worker| worker.run());
    let views = Watcher::default().judge(&fleet, load);
    assert!(losses(&views) >= fleet.slots() as u64, "what ran");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

#[test]
fn mocks_are_killed_and_every_output_is_whole() {
    outputs_are_whole("mock", 400, |nth| format!("print {nth}\nsleep 20ms\nprint x"));
}

#[test]
fn sandboxed_processes_are_killed_with_their_worker_and_every_output_is_whole() {
    outputs_are_whole("process", 40, |nth| format!("echo {nth}; sleep 0.2; echo x"));
}

fn outputs_are_whole(executor: &str, count: usize, code: impl Fn(usize) -> String) {
    let mut fleet = Fleet::start(&Plan { executor: Some(executor), ..Plan::default() });
    let door = fleet.doors()[0];
    let task = |nth| json!({ "id": format!("t-{nth}"), "runtime": "sh", "code": code(nth) });
    let some = |part| Load::of(&[door], (part * count..(part + 1) * count).map(task).collect());
    let mut loads = vec![some(0)];
    for worker in [0, 1] {
        until("it runs something", || {
            // Whoever looks too late finds all done, and hands in more.
            let told = get(door, "/v1/executors").unwrap_or_default();
            let is_handed_in = loads.iter().all(|load| load.acknowledged() == count);
            if is_handed_in && told["tasks"]["queued"] == 0 {
                loads.push(some(loads.len()));
            }
            fleet.capacity(worker)["running"] == SLOTS
        });
        fleet.workers[worker].kill();
    }
    let load = Load::all(loads);
    (0..2).for_each(|worker| fleet.workers[worker].run());
    let views = Watcher::default().judge(&fleet, load);
    for id in views.keys() {
        let output = get(door, &format!("/v1/tasks/{id}/output")).unwrap();
        let nth = id.strip_prefix("t-").unwrap();
        assert_eq!(
            output["chunks"],
            json!([{ "stream": "stdout", "text": format!("{nth}\nx\n") }])
        );
    }
}
