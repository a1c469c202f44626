//! What a decision costs, beside a semaphore that a Rust server would use instead.
//!
//! `cargo bench -p tidegate --bench admission`
//!
//! Ratios and not nanoseconds: every round measures every case, in a new order, and a ratio is taken within a
//! round, so that a busy or a slow machine disturbs both of its sides. Exit code 1 if a target is missed.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;
use tidegate::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};
use tokio::sync::Semaphore;

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 41;
/// About 5 ms a case: long beside the clock, short beside the changes of a shared machine.
const OPERATIONS: u32 = 200_000;
const THREADS: usize = 2;
/// Longer with several threads: what matters there is that they run at the same time, and a scheduler that has
/// other work lets them do so only for some of its slices of a few milliseconds.
const OPERATIONS_CONTENDED: u32 = 2_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    Semaphore,
    AdmitDrop,
    AdmitSuccess,
    Refuse,
    SemaphoreContended,
    AdmitDropContended,
    AdmitSuccessContended,
    RefuseContended,
}

/// One line of the table: a case in terms of another.
struct Ratio {
    name: &'static str,
    of: Case,
    to: Case,
    target_max: f64,
}

struct Subjects {
    semaphore: Semaphore,
    open: InFlightTracker,
    closed: InFlightTracker,
}

const RATIOS: [Ratio; 6] = [
    Ratio::new("admit+drop / tokio semaphore, 1 thread", Case::AdmitDrop, Case::Semaphore),
    Ratio::new("admit+success / tokio semaphore, 1 thread", Case::AdmitSuccess, Case::Semaphore),
    Ratio::new(
        "admit+drop / tokio semaphore, 2 threads",
        Case::AdmitDropContended,
        Case::SemaphoreContended,
    ),
    Ratio::new(
        "admit+success / tokio semaphore, 2 threads",
        Case::AdmitSuccessContended,
        Case::SemaphoreContended,
    ),
    Ratio::new("refuse / admit+drop, 1 thread", Case::Refuse, Case::AdmitDrop),
    Ratio::new("refuse / admit+drop, 2 threads", Case::RefuseContended, Case::AdmitDropContended),
];

fn main() -> ExitCode {
    let subjects = Subjects::new();
    let rounds = measure(&subjects);
    print_costs(&rounds);
    let mut all_hold = true;
    println!("\n{:<46} {:>7} {:>15} {:>7}", "ratio", "median", "quartiles", "target");
    for ratio in &RATIOS {
        let mut samples: Vec<f64> = rounds
            .iter()
            .map(|round| round[ratio.of as usize] / round[ratio.to as usize])
            .collect();
        samples.sort_by(f64::total_cmp);
        let median = quantile(&samples, 2);
        let quartiles = format!("{:.2} … {:.2}", quantile(&samples, 1), quantile(&samples, 3));
        let holds = median <= ratio.target_max;
        all_hold &= holds;
        println!(
            "{:<46} {median:>7.2} {quartiles:>15} {:>7.2}  {}",
            ratio.name,
            ratio.target_max,
            verdict(holds)
        );
    }
    for (name, count) in subjects.allocations() {
        all_hold &= count == 0;
        println!("{name:<46} {count:>7} {:>15} {:>7}  {}", "", 0, verdict(count == 0));
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nanoseconds an operation, by round and case.
fn measure(subjects: &Subjects) -> Vec<[f64; Case::ALL.len()]> {
    let mut order = Case::ALL;
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    // A round that is thrown away warms caches and branch predictors.
    (0..=ROUNDS)
        .map(|_| {
            shuffle(&mut order, &mut dice);
            let mut round = [0.0; Case::ALL.len()];
            for case in order {
                round[case as usize] = subjects.time(case);
            }
            round
        })
        .skip(1)
        .collect()
}

fn shuffle(cases: &mut [Case], dice: &mut u64) {
    for last in (1..cases.len()).rev() {
        // xorshift64
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        cases.swap(last, (*dice % (last as u64 + 1)) as usize);
    }
}

fn print_costs(rounds: &[[f64; Case::ALL.len()]]) {
    println!("{:<46} {:>10}", format!("case (median of {ROUNDS} rounds)"), "ns each");
    for case in Case::ALL {
        let mut samples: Vec<f64> = rounds.iter().map(|round| round[case as usize]).collect();
        samples.sort_by(f64::total_cmp);
        println!("{:<46} {:>10.1}", format!("{case:?}"), quantile(&samples, 2));
    }
}

fn quantile(sorted: &[f64], quarter: usize) -> f64 {
    sorted[(sorted.len() - 1) * quarter / 4]
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSED" }
}

/// Nanoseconds that each of these operations takes on this thread.
fn time(operations: u32, mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..operations {
        operation();
    }
    start.elapsed().as_nanos() as f64 / f64::from(operations)
}

/// The same with several threads at once: the mean of what each of them saw.
fn time_contended(operation: impl Fn() + Sync) -> f64 {
    let start = Barrier::new(THREADS);
    let total: f64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    time(OPERATIONS_CONTENDED, &operation)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("an operation panicked")).sum()
    });
    total / THREADS as f64
}

// === impl Case ===

impl Case {
    const ALL: [Self; 8] = [
        Self::Semaphore,
        Self::AdmitDrop,
        Self::AdmitSuccess,
        Self::Refuse,
        Self::SemaphoreContended,
        Self::AdmitDropContended,
        Self::AdmitSuccessContended,
        Self::RefuseContended,
    ];
}

// === impl Ratio ===

impl Ratio {
    const fn new(name: &'static str, of: Case, to: Case) -> Self {
        Self { name, of, to, target_max: 1.0 }
    }
}

// === impl Subjects ===

impl Subjects {
    fn new() -> Self {
        let limits = PriorityLimits::default();
        Self {
            semaphore: Semaphore::new(usize::from(limits.global_limit)),
            open: InFlightTracker::new(limits, Sharing::Strict),
            closed: InFlightTracker::new(PriorityLimits::new(0, 0, 0, 0), Sharing::Strict),
        }
    }

    fn time(&self, case: Case) -> f64 {
        match case {
            Case::Semaphore => time(OPERATIONS, || self.take_semaphore()),
            Case::AdmitDrop => time(OPERATIONS, || self.admit_drop()),
            Case::AdmitSuccess => time(OPERATIONS, || self.admit_success()),
            Case::Refuse => time(OPERATIONS, || self.refuse()),
            Case::SemaphoreContended => time_contended(|| self.take_semaphore()),
            Case::AdmitDropContended => time_contended(|| self.admit_drop()),
            Case::AdmitSuccessContended => time_contended(|| self.admit_success()),
            Case::RefuseContended => time_contended(|| self.refuse()),
        }
    }

    fn allocations(&self) -> [(&'static str, u64); 2] {
        let admitting = allocation_counter::measure(|| {
            time(OPERATIONS, || self.admit_success());
            time(OPERATIONS, || self.admit_drop());
        });
        let refusing = allocation_counter::measure(|| {
            time(OPERATIONS, || self.refuse());
        });
        [
            ("allocations of 400,000 admissions and releases", admitting.count_total),
            ("allocations of 200,000 refusals", refusing.count_total),
        ]
    }

    #[inline]
    fn take_semaphore(&self) {
        let permit = self.semaphore.try_acquire().expect("a thousand places for two threads");
        drop(black_box(permit));
    }

    #[inline]
    fn admit_drop(&self) {
        let permit = self.open.try_acquire(black_box(MessagePriority::Normal));
        drop(black_box(permit.expect("300 places for two threads")));
    }

    #[inline]
    fn admit_success(&self) {
        let permit = self.open.try_acquire(black_box(MessagePriority::Normal));
        black_box(permit.expect("300 places for two threads")).success();
    }

    #[inline]
    fn refuse(&self) {
        assert!(black_box(self.closed.try_acquire(black_box(MessagePriority::Normal))).is_err());
    }
}
