//! A thousand tasks through all of it.

use crate::fleet::{Fleet, Plan};
use crate::load::Load;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::until;
use crate::verdict::{Views, Watcher, judge_slots, judge_starts, losses};
use serde_json::Value;
use std::process::Command;

const TASKS: usize = 1_000;

#[test]
fn a_thousand_tasks_end_once_whatever_is_killed_or_stopped() {
    let (postgres, mut redis) = (Postgres::start(&[]), Redis::start(&[]));
    let plan = Plan {
        managers: 2,
        store: Some(postgres.url("schema=chaos")),
        ledger: Some(redis.url("")),
        placement: "semaphore",
        ..Plan::default()
    };
    let mut fleet = Fleet::start(&plan);
    let load = Load::mixed(&fleet.doors(), TASKS);
    let mut watcher = Watcher::default();
    let started = |fleet: &Fleet, count| {
        until("more has started", || fleet.target.started() >= count);
    };
    started(&fleet, 80);
    fleet.workers[0].kill();
    fleet.workers[0].run();
    started(&fleet, 160);
    fleet.managers[0].kill();
    fleet.managers[0].run();
    started(&fleet, 240);
    redis.crash();
    until("Redis is back", || redis.run());
    started(&fleet, 320);
    fleet.hold_every_slot();
    let mut before = None;
    until("the losses so far are known", || {
        before = watcher.look(fleet.doors()[0]).map(|views| losses(&views));
        before.is_some()
    });
    fleet.workers[1].stop();
    fleet.target.let_go();
    until("what it had is lost", || {
        watcher.look(fleet.doors()[0]).is_some_and(|views| Some(losses(&views)) > before)
    });
    fleet.workers[1].go_on();
    started(&fleet, 500);
    fleet.managers[1].stop();
    started(&fleet, 700);
    fleet.workers[2].kill();
    fleet.managers[1].go_on();
    fleet.workers[2].run();
    fleet.managers[0].kill();
    redis.crash();
    until("Redis is back", || redis.run());
    fleet.managers[0].run();
    let views = watcher.judge(&fleet, load);
    judge_starts(&fleet, &views);
    (0..2).for_each(|nth| the_command_tells_the_same(&fleet, nth, &views));
    judge_slots(&fleet);
}

/// `tidegate tasks`, page by page.
fn the_command_tells_the_same(fleet: &Fleet, manager: usize, views: &Views) {
    let mut told = Views::new();
    let mut after = None;
    loop {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["tasks", "--json", "--limit", "500", "--admin"]);
        command.arg(format!("http://{}", fleet.admin(manager)));
        command.args(after.iter().flat_map(|after: &String| ["--after", after]));
        let output = command.output().unwrap();
        let page: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        for view in page["tasks"].as_array().unwrap() {
            told.insert(view["id"].as_str().unwrap().to_owned(), view.clone());
        }
        let Some(next) = page["next"].as_str() else { break };
        after = Some(next.to_owned());
    }
    assert_eq!(told, *views);
}
