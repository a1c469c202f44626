//! Real threads over one retry budget, while its window moves: never one more than the requests have paid for.

// Threads and shared state are what is under test here; the decisions themselves use neither.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]
#![cfg(not(feature = "__loom"))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tidegate_core::retry::{BudgetLimits, RetryBudget};

const THREADS: usize = 8;
const ROUNDS: u64 = 100_000;

#[test]
fn threads_together_are_granted_what_the_requests_pay_for() {
    let limits = BudgetLimits { floor_per_s: 0.0, ..BudgetLimits::default() };
    let budget = RetryBudget::new(limits);
    // Counted up before a request is recorded and read after a retry is granted: never less than was paid.
    let (requests, retries, clock_ms) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    // A hundred rounds of all threads are a second: steps begin all the time.
                    let ms = clock_ms.fetch_add(1, Ordering::Relaxed) * 10 / THREADS as u64;
                    let now = Duration::from_millis(ms);
                    if round % 2 == 0 {
                        requests.fetch_add(1, Ordering::SeqCst);
                        budget.record_request(now);
                    }
                    if budget.try_retry(now) {
                        let granted = retries.fetch_add(1, Ordering::SeqCst) + 1;
                        let paid = requests.load(Ordering::SeqCst) / 5;
                        assert!(granted <= paid, "{granted} granted, {paid} paid for");
                    }
                }
            });
        }
    });
    let (requests, retries) = (requests.into_inner(), retries.into_inner());
    assert_eq!(requests, THREADS as u64 * ROUNDS / 2);
    // What is asked for all the time is granted almost to the last: losing races costs next to nothing.
    assert!(retries * 5 >= requests * 9 / 10, "{retries} of {requests}");
}
