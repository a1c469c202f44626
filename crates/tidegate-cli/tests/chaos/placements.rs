//! Every way to come to a slot, with a worker that is killed and comes back.

use crate::fleet::{Fleet, Plan, SLOTS};
use crate::load::Load;
use crate::support::redis::Redis;
use crate::verdict::{Watcher, judge_slots, judge_starts, losses};

#[test]
fn pull() {
    survives("pull", None);
}

#[test]
fn optimistic() {
    survives("optimistic", None);
}

#[test]
fn queue() {
    survives("queue", None);
}

#[test]
fn reserve() {
    survives("reserve", None);
}

#[test]
fn semaphore() {
    survives("semaphore", None);
}

#[test]
fn semaphore_on_redis() {
    let redis = Redis::shared();
    survives("semaphore", Some(redis.url("namespace=placements")));
}

fn survives(placement: &str, ledger: Option<String>) {
    let mut fleet = Fleet::start(&Plan { placement, ledger, workers: 2, ..Plan::default() });
    let load = Load::mixed(&fleet.doors(), 150);
    fleet.hold_every_slot();
    fleet.workers[1].kill();
    fleet.target.let_go();
    fleet.workers[1].run();
    let views = Watcher::default().judge(&fleet, load);
    assert!(losses(&views) >= SLOTS as u64, "what ran there");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}
