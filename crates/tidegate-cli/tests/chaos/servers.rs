//! The servers behind the managers, killed: Redis, which counts the slots, and PostgreSQL, which keeps the tasks.

use crate::fleet::{Fleet, LONG_LEASE_MS, Plan};
use crate::load::Load;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::until;
use crate::verdict::{Watcher, judge_slots, judge_starts, losses};

/// A fleet whose slots it counts.
fn counted_by(redis: &Redis) -> Plan<'_> {
    let ledger = Some(redis.url(""));
    Plan { ledger, placement: "semaphore", lease_ms: LONG_LEASE_MS, ..Plan::default() }
}

/// The server has nothing on disk: all slots and their holders are forgotten.
#[test]
fn redis_is_killed_and_comes_back_empty() {
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::start(&counted_by(&redis));
    let load = Load::mixed(&fleet.doors(), 200);
    fleet.hold_every_slot();
    redis.crash();
    fleet.target.let_go();
    (0..fleet.workers.len()).for_each(|nth| fleet.until_idle(nth));
    until("Redis is back", || redis.run());
    let views = Watcher::default().judge(&fleet, load);
    assert_eq!(losses(&views), 0, "nothing that ran has to do with it");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// Back at once, so that nobody may notice but by what it has forgotten.
#[test]
fn redis_is_empty_while_executions_go_on() {
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::start(&counted_by(&redis));
    let load = Load::mixed(&fleet.doors(), 200);
    fleet.hold_every_slot();
    redis.crash();
    until("Redis is back", || redis.run());
    fleet.target.let_go();
    let views = Watcher::default().judge(&fleet, load);
    assert_eq!(losses(&views), 0, "nothing that ran has to do with it");
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}

/// Ends are persisted when the store is back; no attempt is sent that was not persisted before.
#[test]
fn postgres_crashes_and_comes_back() {
    let mut postgres = Postgres::start(&[]);
    let store = Some(postgres.url("schema=chaos"));
    let fleet = Fleet::start(&Plan { managers: 2, store, ..Plan::default() });
    let load = Load::mixed(&fleet.doors(), 200);
    until("half is handed in", || load.acknowledged() >= 100);
    fleet.hold_every_slot();
    postgres.crash();
    fleet.target.let_go();
    (0..fleet.workers.len()).for_each(|nth| fleet.until_idle(nth));
    // Not before the last process of its life before is gone.
    until("PostgreSQL is back", || postgres.run());
    let views = Watcher::default().judge(&fleet, load);
    judge_starts(&fleet, &views);
    judge_slots(&fleet);
}
