//! Managers on one PostgreSQL: queued tasks belong to nobody, and run wherever a slot is free.

use crate::ask::get;
use crate::fleet::{Fleet, LONG_LEASE_MS, Plan};
use crate::load::Load;
use crate::support::postgres::Postgres;
use crate::until;
use crate::verdict::{Watcher, judge_slots, judge_starts, list, losses};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest median wait for a slot that is free at another manager: much less than between two polls.
const WAIT_MS_MAX: u64 = 250;
/// Longest wait for the next start after a manager has left.
const NEXT_START_MAX: Duration = Duration::from_secs(1);

fn task(id: &str, priority: &str) -> Value {
    json!({ "id": id, "runtime": "any", "code": "work", "priority": priority })
}

fn hand_in(door: SocketAddr, tasks: Vec<Value>) -> Load {
    let mut load = Load::of(&[door], tasks);
    load.finish();
    load
}

fn view(door: SocketAddr, id: &str) -> Value {
    get(door, &format!("/v1/tasks/{id}")).unwrap_or_default()
}

/// The first manager, with two tasks that run on the only worker and four that wait, and the second, which has
/// come later.
fn one_has_everything(postgres: &Postgres, schema: &str) -> (Fleet, Load) {
    let store = Some(postgres.url(&format!("schema={schema}")));
    let plan = Plan { managers: 2, workers: 1, store, lease_ms: LONG_LEASE_MS, ..Plan::default() };
    let mut fleet = Fleet::start(&plan);
    fleet.managers[1].kill();
    fleet.target.hold();
    let tasks = (0..6).map(|nth| task(&format!("t-{nth}"), "normal")).collect();
    let load = hand_in(fleet.doors()[0], tasks);
    until("every slot is taken", || fleet.target.held() >= fleet.slots());
    fleet.managers[1].run();
    fleet.until_all_up(1);
    (fleet, load)
}

#[test]
fn a_task_of_a_manager_without_a_slot_runs_at_another_at_once() {
    let postgres = Postgres::shared();
    let store = Some(postgres.url("schema=chaos_claims"));
    let fleet = Fleet::start(&Plan { managers: 2, without: 1, store, ..Plan::default() });
    let doors = fleet.doors();
    let mut waits: Vec<_> = (0..9)
        .map(|nth| {
            let id = format!("t-{nth}");
            hand_in(doors[0], vec![task(&id, "normal")]);
            until("it is over", || view(doors[0], &id)["status"] == "succeeded");
            let view = view(doors[0], &id);
            view["started_ms"].as_u64().unwrap() - view["submitted_ms"].as_u64().unwrap()
        })
        .collect();
    waits.sort_unstable();
    assert!(waits[4] < WAIT_MS_MAX, "{waits:?}");

    fleet.target.hold();
    hand_in(doors[0], (0..6).map(|nth| task(&format!("runs-{nth}"), "high")).collect());
    until("every slot is taken", || fleet.target.held() >= fleet.slots());
    for (id, priority) in [("a", "low"), ("b", "normal"), ("c", "normal")] {
        hand_in(doors[1], vec![task(id, priority)]);
    }
    for (id, position) in [("b", 0), ("c", 1), ("a", 2)] {
        for door in &doors {
            let view = view(*door, id);
            assert_eq!(view["queue_position"], position, "{view}");
            assert!(view["queue_age_ms"].is_u64(), "{view}");
        }
    }
    fleet.target.let_go();
    for door in &doors {
        until("all are over", || list(*door).is_some_and(|all| all.len() == 18));
        until("it is over", || view(*door, "a")["status"] == "succeeded");
    }
    judge_starts(&fleet, &list(doors[0]).unwrap());
}

/// The lease is much longer than this takes: nobody waits for its end.
#[test]
fn a_manager_that_shuts_down_hands_its_work_over_at_once() {
    let postgres = Postgres::shared();
    let (mut fleet, load) = one_has_everything(&postgres, "chaos_handed_over");
    let since = Instant::now();
    fleet.managers[0].terminate();
    until("the other follows", || {
        let views = list(fleet.doors()[1]).unwrap_or_default();
        let log = fleet.managers[1].log();
        views.len() == 6 && log.contains("tasks taken over tasks=2")
    });
    assert!(since.elapsed() < Duration::from_millis(LONG_LEASE_MS) / 2, "{:?}", since.elapsed());
    let freed = Instant::now();
    fleet.target.let_go();
    until("the next is started", || fleet.target.started() > fleet.slots());
    assert!(freed.elapsed() < NEXT_START_MAX, "{:?}", freed.elapsed());
    fleet.managers.remove(0);
    let views = Watcher::default().judge(&fleet, load);
    assert!(since.elapsed() < Duration::from_millis(LONG_LEASE_MS), "{:?}", since.elapsed());
    assert_eq!(losses(&views), 0, "what ran goes on");
    assert!(views.values().all(|view| view["attempt"] == 1), "{views:?}");
    judge_starts(&fleet, &views);
}

/// Adoption of what ran, when its lease is over; queued tasks are nobody's and wait for a slot alone.
#[test]
fn tasks_that_wait_do_not_wait_for_a_killed_manager() {
    let postgres = Postgres::shared();
    let (mut fleet, load) = one_has_everything(&postgres, "chaos_killed_claimer");
    let since = Instant::now();
    fleet.managers[0].kill();
    fleet.managers.remove(0);
    fleet.target.let_go();
    let over = || {
        let views = list(fleet.doors()[0]).unwrap_or_default();
        views.values().filter(|view| view["status"] == "succeeded").count()
    };
    until("what waited is over", || over() >= 4);
    assert!(since.elapsed() < Duration::from_millis(LONG_LEASE_MS) / 2, "{:?}", since.elapsed());
    assert_eq!(over(), 4, "the others are a living manager's, as far as anybody knows");
    let views = Watcher::default().judge(&fleet, load);
    assert_eq!(losses(&views), 0, "the worker remembers");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}
