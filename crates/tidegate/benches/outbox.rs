//! What a message costs in the queue of a destination, beside queues that a Rust program would use instead.
//!
//! `cargo bench -p tidegate --bench outbox`
//!
//! Every round measures every case, in a new order; a ratio is taken within a round, so that a busy or a slow
//! machine disturbs both of its sides. Only the rate that was asked for, ten million a second on one core, is
//! an absolute. Exit code 1 if it is missed, or if a message allocates.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::hint::black_box;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Instant;
use tidegate::MessageClass::{Control, Data, Dispatch, Telemetry};
use tidegate::outbox::{
    Delivery, OutgoingConfig, OutgoingRequestManager, QueueConfig, RobustQueue, Transport,
};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 41;
/// Some milliseconds a case: long beside the clock, short beside the changes of a shared machine.
const OPERATIONS: u32 = 200_000;
/// What was asked for: put and get together, on one core.
const PAIRS_PER_S_MIN: f64 = 10e6;
/// Messages that wait meanwhile: the queue is throttled, so the states are at work.
const WAITING: usize = 400;
const BATCH: usize = 64;

/// As large as a small request with its headers' handles.
type Message = [u64; 8];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// A plain ring: no bound, no classes, no states. The floor.
    VecDeque,
    /// What a sender task would otherwise be fed with.
    TokioMpsc,
    /// One class, 400 waiting.
    PutGet,
    /// All four classes in turn, 400 waiting.
    PutGetMixed,
    /// Batches of 64.
    PutGetBatch,
    /// At the bound: each put drops the oldest.
    PutDrop,
    /// At the bound: each put is refused.
    PutRefused,
}

/// Takes batches and does nothing with them.
struct Nowhere;

struct Subjects {
    ring: VecDeque<Message>,
    channel: (mpsc::Sender<Message>, mpsc::Receiver<Message>),
    open: RobustQueue<Message>,
    mixed: RobustQueue<Message>,
    full: RobustQueue<Message>,
    batch: Vec<Message>,
}

fn main() -> ExitCode {
    let mut subjects = Subjects::new();
    let rounds = measure(&mut subjects);
    let mut all_hold = true;
    println!(
        "{:<14} {:>9} {:>12} {:>14} {:>15}",
        format!("{ROUNDS} rounds"),
        "ns each",
        "million/s",
        "/ VecDeque",
        "/ tokio mpsc"
    );
    for case in Case::ALL {
        let ns = median(&rounds, |round| round[case as usize]);
        let to =
            |other: Case| median(&rounds, |round| round[case as usize] / round[other as usize]);
        let target = case.has_target();
        let holds = !target || 1e9 / ns >= PAIRS_PER_S_MIN;
        all_hold &= holds;
        println!(
            "{:<14} {ns:>9.1} {:>12.1} {:>14.2} {:>15.2}  {}",
            format!("{case:?}"),
            1e3 / ns,
            to(Case::VecDeque),
            to(Case::TokioMpsc),
            if target { verdict(holds) } else { "" },
        );
    }
    println!("target: {} million a second, on one core", PAIRS_PER_S_MIN / 1e6);
    for case in Case::ALL.into_iter().filter(|case| case.has_target()) {
        let count = allocation_counter::measure(|| {
            subjects.time(case);
        })
        .count_total;
        all_hold &= count == 0;
        println!("allocations of {OPERATIONS} {case:?}: {count}  {}", verdict(count == 0));
    }
    print_whole_way();
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The whole way from a producer through a sender task, beside a channel and a task that reads it in batches. No
/// target: what it adds is a deadline, the states, and an answer to what became of each message.
fn print_whole_way() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime().expect("a runtime");
    let mut pairs: Vec<_> =
        (0..ROUNDS).map(|_| (through_manager(&runtime), through_channel(&runtime))).collect();
    pairs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (manager, channel) = pairs[ROUNDS / 2];
    println!(
        "whole way, batches of {BATCH}: {manager:.0} ns each, {:.1} million/s; / tokio mpsc and a task: {:.2}",
        1e3 / manager,
        manager / channel
    );
}

fn through_manager(runtime: &Runtime) -> f64 {
    runtime.block_on(async {
        let (manager, _hand_back) =
            OutgoingRequestManager::new(Nowhere, OutgoingConfig::default()).expect("it is valid");
        let destination: SocketAddr = ([127, 0, 0, 1], 9).into();
        let start = Instant::now();
        let mut sent = 0;
        while sent < OPERATIONS {
            for _ in 0..BATCH {
                let put = manager.enqueue(&destination, Data, message(u64::from(sent)));
                assert!(put.is_ok_and(|put| put.dropped.is_none()), "there is room");
                sent += 1;
            }
            tokio::task::yield_now().await;
        }
        manager.shutdown(std::time::Duration::from_secs(60)).await;
        assert_eq!(manager.stats()[0].sender.total_sent, u64::from(sent));
        start.elapsed().as_nanos() as f64 / f64::from(sent)
    })
}

fn through_channel(runtime: &Runtime) -> f64 {
    runtime.block_on(async {
        let (sender, mut receiver) = mpsc::channel(QueueConfig::default().bound());
        let start = Instant::now();
        let task = tokio::spawn(async move {
            let mut received = 0;
            let mut batch = Vec::with_capacity(BATCH);
            while receiver.recv_many(&mut batch, BATCH).await > 0 {
                received += batch.len();
                black_box(&batch);
                batch.clear();
            }
            received
        });
        let mut sent = 0;
        while sent < OPERATIONS {
            for _ in 0..BATCH {
                sender.try_send(message(u64::from(sent))).expect("there is room");
                sent += 1;
            }
            tokio::task::yield_now().await;
        }
        drop(sender);
        assert_eq!(task.await.expect("it does not panic"), sent as usize);
        start.elapsed().as_nanos() as f64 / f64::from(sent)
    })
}

/// Nanoseconds an operation, by round and case.
fn measure(subjects: &mut Subjects) -> Vec<[f64; Case::ALL.len()]> {
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

fn median(rounds: &[[f64; Case::ALL.len()]], of: impl Fn(&[f64; Case::ALL.len()]) -> f64) -> f64 {
    let mut samples: Vec<f64> = rounds.iter().map(of).collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSED" }
}

/// Nanoseconds that each of these operations takes.
fn time(operations: u32, mut operation: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    for number in 0..operations {
        operation(u64::from(number));
    }
    start.elapsed().as_nanos() as f64 / f64::from(operations)
}

fn message(number: u64) -> Message {
    black_box([number; 8])
}

// === impl Case ===

impl Case {
    const ALL: [Self; 7] = [
        Self::VecDeque,
        Self::TokioMpsc,
        Self::PutGet,
        Self::PutGetMixed,
        Self::PutGetBatch,
        Self::PutDrop,
        Self::PutRefused,
    ];

    fn has_target(self) -> bool {
        !matches!(self, Self::VecDeque | Self::TokioMpsc)
    }
}

// === impl Nowhere ===

impl Transport for Nowhere {
    type Destination = SocketAddr;
    type Message = Message;
    type Reply = ();
    type Error = Infallible;

    fn batch_max(&self) -> usize {
        BATCH
    }

    async fn send(&self, _: &SocketAddr, batch: &[Message]) -> Delivery<(), Infallible> {
        black_box(batch);
        Ok(vec![(); batch.len()])
    }
}

// === impl Subjects ===

impl Subjects {
    fn new() -> Self {
        let config = QueueConfig::default();
        let queue = || RobustQueue::new(config).expect("the defaults are valid");
        let mut subjects = Self {
            ring: VecDeque::with_capacity(config.bound()),
            channel: mpsc::channel(config.bound()),
            open: queue(),
            mixed: queue(),
            full: queue(),
            batch: Vec::with_capacity(BATCH),
        };
        for number in 0..WAITING as u64 {
            subjects.ring.push_back(message(number));
            subjects.channel.0.try_send(message(number)).expect("there is room");
            let _ = subjects.open.put(Data, message(number)).expect("there is room");
            let _ = subjects.mixed.put(Data, message(number)).expect("there is room");
        }
        for number in 0..config.bound() as u64 {
            let _ = subjects.full.put(Data, message(number)).expect("there is room");
        }
        subjects
    }

    fn time(&mut self, case: Case) -> f64 {
        match case {
            Case::VecDeque => time(OPERATIONS, |number| {
                self.ring.push_back(message(number));
                black_box(self.ring.pop_front());
            }),
            Case::TokioMpsc => time(OPERATIONS, |number| {
                self.channel.0.try_send(message(number)).expect("there is room");
                black_box(self.channel.1.try_recv().expect("one was just sent"));
            }),
            Case::PutGet => time(OPERATIONS, |number| {
                let _ = black_box(self.open.put(black_box(Data), message(number)));
                black_box(self.open.get());
            }),
            Case::PutGetMixed => time(OPERATIONS, |number| {
                let class = [Data, Telemetry, Dispatch, Control][number as usize % 4];
                let _ = black_box(self.mixed.put(class, message(number)));
                black_box(self.mixed.get());
            }),
            Case::PutGetBatch => self.time_batches(),
            Case::PutDrop => time(OPERATIONS, |number| {
                let put = self.full.put(black_box(Data), message(number));
                black_box(put.expect("data makes room for itself").dropped);
            }),
            Case::PutRefused => time(OPERATIONS, |number| {
                let put = self.full.put(black_box(Dispatch), message(number));
                black_box(put.expect_err("it is full"));
            }),
        }
    }

    fn time_batches(&mut self) -> f64 {
        let batches = OPERATIONS / BATCH as u32;
        let each = time(batches, |number| {
            for _ in 0..BATCH {
                let _ = black_box(self.open.put(black_box(Data), message(number)));
            }
            self.open.get_batch(BATCH, &mut self.batch);
            black_box(&self.batch);
            self.batch.clear();
        });
        each / BATCH as f64
    }
}
