//! Admission by priority without any server around it.
//!
//! `cargo run -p tidegate --example tracker`

use tidegate::admission::Alert;
use tidegate::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};

/// Twelve messages of each priority arrive, and none of them ends.
const ARRIVALS: usize = 12;

pub(crate) fn main() {
    let tracker = InFlightTracker::new(PriorityLimits::new(20, 10, 6, 4), Sharing::Strict);

    let mut in_progress = Vec::new();
    for _ in 0..ARRIVALS {
        for priority in MessagePriority::ALL {
            match tracker.try_acquire(priority) {
                Ok(permit) => in_progress.push(permit),
                Err(refusal) => println!("{refusal} (the tracker is {})", tracker.load_state()),
            }
        }
    }
    print_load(&tracker);

    // The work is done: every permit ends with an outcome, and its slot is free.
    for permit in in_progress {
        permit.success();
    }
    println!("\nall done, the tracker is {}", tracker.load_state());
    print_load(&tracker);
}

fn print_load(tracker: &InFlightTracker) {
    let stats = tracker.stats();
    println!("\n{:<10} {:>9} {:>9} {:>9}", "priority", "in flight", "acquired", "shed");
    for priority in MessagePriority::ALL {
        println!(
            "{:<10} {:>9} {:>9} {:>9}",
            priority.name(),
            stats.in_flight(priority),
            stats.acquired(priority),
            stats.shed(priority),
        );
    }
    for alert in Alert::of(&stats, 0.8) {
        println!("alert: {alert}");
    }
}
