//! Managers that are killed, or stopped for so long that another takes their tasks over.

use crate::fleet::{Fleet, LONG_LEASE_MS, Plan};
use crate::load::Load;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::until;
use crate::verdict::{Watcher, judge_slots, judge_starts, losses};

/// A restarted manager finds attempts that ended meanwhile, and does not repeat them.
#[test]
fn a_manager_is_killed_and_finds_what_ended_meanwhile() {
    let mut fleet = Fleet::start(&Plan { lease_ms: LONG_LEASE_MS, ..Plan::default() });
    let load = Load::mixed(&fleet.doors(), 300);
    fleet.hold_every_slot();
    fleet.managers[0].kill();
    fleet.target.let_go();
    (0..fleet.workers.len()).for_each(|nth| fleet.until_idle(nth));
    fleet.managers[0].run();
    let views = Watcher::default().judge(&fleet, load);
    assert_eq!(losses(&views), 0, "the workers remember");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// Nobody asks for what runs: the workers stop it, and their slots are free without a manager.
#[test]
fn a_manager_is_killed_for_longer_than_a_lease() {
    let mut fleet = Fleet::start(&Plan::default());
    let load = Load::mixed(&fleet.doors(), 200);
    fleet.hold_every_slot();
    fleet.managers[0].kill();
    (0..fleet.workers.len()).for_each(|nth| fleet.until_idle(nth));
    fleet.target.let_go();
    fleet.managers[0].run();
    let views = Watcher::default().judge(&fleet, load);
    assert!(losses(&views) >= fleet.slots() as u64, "what ran");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// Its answers to what was handed in are lost, each time; who repeats them gets one task.
#[test]
fn a_manager_is_killed_again_and_again_while_tasks_are_handed_in() {
    let mut fleet = Fleet::start(&Plan::default());
    let load = Load::mixed(&fleet.doors(), 400);
    for part in 1..=4 {
        until("some are acknowledged", || load.acknowledged() >= part * 60);
        fleet.managers[0].kill();
        fleet.managers[0].run();
    }
    let views = Watcher::default().judge(&fleet, load);
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// The other ends all that it had while it is stopped. When it goes on, it must believe that.
#[test]
fn a_stopped_manager_is_replaced_and_goes_on() {
    let (postgres, redis) = (Postgres::shared(), Redis::shared());
    let plan = Plan {
        managers: 2,
        store: Some(postgres.url("schema=chaos_stopped_manager")),
        ledger: Some(redis.url("namespace=stopped-manager")),
        placement: "semaphore",
        ..Plan::default()
    };
    let fleet = Fleet::start(&plan);
    let mut load = Load::mixed(&fleet.doors(), 300);
    let mut watcher = Watcher::default();
    fleet.hold_every_slot();
    fleet.managers[0].stop();
    fleet.target.let_go();
    load.finish();
    watcher.until_over(fleet.doors()[1], &load);
    fleet.managers[0].go_on();
    let views = watcher.judge(&fleet, load);
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

#[test]
fn a_killed_manager_is_replaced_for_good() {
    let postgres = Postgres::shared();
    let plan = Plan {
        managers: 2,
        store: Some(postgres.url("schema=chaos_killed_manager")),
        ..Plan::default()
    };
    let mut fleet = Fleet::start(&plan);
    let load = Load::mixed(&fleet.doors(), 200);
    fleet.hold_every_slot();
    fleet.managers[0].kill();
    fleet.target.let_go();
    fleet.managers.remove(0);
    let views = Watcher::default().judge(&fleet, load);
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}
