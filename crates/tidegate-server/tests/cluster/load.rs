use crate::bed::{MACHINE, Member, within};
use std::hint::black_box;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Seconds of load: a short form, or as long as the variable says.
fn seconds() -> u64 {
    let given = std::env::var("MEMBERSHIP_LOAD_S").ok().and_then(|text| text.parse().ok());
    given.unwrap_or(10)
}

#[test]
fn nobody_is_suspected_while_all_cores_burn() {
    let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let mut all: Vec<Member> = Vec::new();
    for number in 0..5 {
        let seeds: Vec<&Member> = all.first().into_iter().collect();
        let member = Member::start_direct(&format!("n{number}"), &seeds);
        all.push(member);
    }
    let everybody: Vec<&Member> = all.iter().collect();
    within("all know all", Duration::from_secs(10), || {
        all.iter().all(|member| member.sees(&everybody))
    });
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut number = 1_u64;
                while !stop.load(Ordering::Relaxed) {
                    number = black_box(number.wrapping_mul(6_364_136_223_846_793_005) + 1);
                }
            });
        }
        thread::sleep(Duration::from_secs(seconds()));
        stop.store(true, Ordering::Relaxed);
    });
    for member in &all {
        let counts = member.membership.counts();
        assert_eq!(counts.suspicions, 0, "{}: {counts:?}", member.name);
        assert!(member.sees(&everybody));
        // Two a second each: the load was measured, not a cluster that stood still.
        assert!(counts.probes_sent >= seconds(), "{}: {counts:?}", member.name);
    }
}
