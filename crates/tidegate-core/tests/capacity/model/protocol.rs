use super::search::{Found, search};
use super::world::{Faults, Flaw, Way, World};

const NONE: Faults = Faults {
    losses: 0,
    doubles: 0,
    manager_crashes: 0,
    executor_crashes: 0,
    expiries: 0,
    adoptions: 0,
};

fn explored(name: &str, world: World) -> Found {
    let found = search(world);
    println!("{name}: {found:?}");
    found
}

fn assert_sound(name: &str, world: World) {
    let found = explored(name, world);
    assert_eq!(found.wrong, None, "{name}");
    assert_eq!(found.stuck, 0, "{name}: from some states nothing is ever completed");
    assert!(found.states > 1_000, "{name}: hardly a search");
}

/// Searches the same world for both ways of placing.
fn assert_both_sound(name: &str, executors: usize, tasks: u8, faults: Faults) {
    for way in [Way::Reserve, Way::Direct] {
        let world = World::new(way, Flaw::None, executors, tasks, 2);
        assert_sound(&format!("{way:?}, {name}"), world.with(faults));
    }
}

#[test]
fn two_tasks_for_one_slot_and_a_bad_network() {
    assert_both_sound("network", 1, 2, Faults { losses: 1, doubles: 1, ..NONE });
}

#[test]
fn two_tasks_for_one_slot_and_time_that_runs_out() {
    assert_both_sound("time", 1, 2, Faults { doubles: 1, expiries: 1, ..NONE });
}

#[test]
fn two_tasks_for_one_slot_and_crashes() {
    assert_both_sound("crashes", 1, 2, Faults { manager_crashes: 1, executor_crashes: 1, ..NONE });
}

#[test]
fn two_executors_two_tasks_and_a_lost_message() {
    assert_both_sound("two by two", 2, 2, Faults { losses: 1, ..NONE });
}

#[test]
fn two_executors_one_task_and_all_crash() {
    let faults = Faults { losses: 1, manager_crashes: 1, executor_crashes: 2, ..NONE };
    assert_both_sound("all crash", 2, 1, faults);
}

#[test]
fn two_executors_one_task_and_a_zombie() {
    let faults = Faults { adoptions: 1, losses: 1, executor_crashes: 1, ..NONE };
    assert_both_sound("zombie", 2, 1, faults);
    let faults = Faults { adoptions: 1, doubles: 1, expiries: 1, ..NONE };
    assert_both_sound("zombie and time", 2, 1, faults);
}

#[test]
fn the_search_finds_what_is_broken() {
    let network = Faults { losses: 1, doubles: 1, expiries: 1, ..NONE };
    let crash = Faults { executor_crashes: 1, losses: 1, ..NONE };
    let adopted = Faults { adoptions: 1, ..NONE };
    let twice = "an attempt was started twice";
    for (flaw, way, executors, faults, what) in [
        (Flaw::NoIdempotency, Way::Reserve, 1, network, twice),
        (
            Flaw::NoValidation,
            Way::Reserve,
            1,
            network,
            "running and reserved are more than the slots",
        ),
        (Flaw::RetryElsewhere, Way::Reserve, 2, network, twice),
        (Flaw::RepeatsAfterCrash, Way::Direct, 1, crash, twice),
        (
            Flaw::ProvisioningTooEarly,
            Way::Direct,
            1,
            NONE,
            "provisioning before an executor has accepted",
        ),
        (Flaw::NoVersions, Way::Direct, 1, adopted, "a task ended twice"),
    ] {
        let found =
            explored(&format!("{flaw:?}"), World::new(way, flaw, executors, 2, 2).with(faults));
        let (steps, found) = found.wrong.expect("nothing was found");
        assert_eq!(found, what, "{flaw:?}");
        assert!(steps > 0);
        // The same world without the flaw has nothing of the kind: the other tests search such worlds through.
    }
}
