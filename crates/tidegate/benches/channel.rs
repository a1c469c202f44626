//! What a message costs in a channel whose window is resized all the time, beside channels of a fixed capacity
//! that a Rust program would use instead.
//!
//! `cargo bench -p tidegate --bench channel`
//!
//! Messages of 64 bytes, one and four producers, one receiver, all tasks of one runtime with two threads. Every
//! round measures every case, in a new order; a ratio is taken within a round, so that a busy or a slow machine
//! disturbs both of its sides. Exit code 1 if a target is missed.
//!
//! By chunks, a message costs less than to make it, and what is left is the tasks taking turns: a window bounds
//! how much passes in one turn. With one producer and half of this capacity, chunks are about 11 times as fast
//! as tokio's channel one by one, and so are vectors through tokio's channel.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate::channel::{Single, Weigh, Weight, Window, WindowGauge, windowed};
use tokio::runtime::Runtime;

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 21;
/// Tens of milliseconds a case: long beside a slice of the scheduler's time.
const MESSAGES: u64 = 240_000;
/// Chunks are so much faster that they need more messages for the same time.
const CHUNKED_MESSAGES: u64 = 16 * MESSAGES;
const CAPACITY: u32 = 4096;
const CHUNK: usize = 64;
const RESIZE_EVERY: Duration = Duration::from_micros(500);
/// What was asked for.
const RESIZE_NS_MAX: f64 = 1_000.0;

struct Message([u64; 8]);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Channel {
    Tokio,
    Flume,
    Kanal,
    Crossfire,
    Async,
    Windowed,
    TokioChunks,
    WindowedChunks,
}

#[derive(Clone, Copy)]
struct Case {
    channel: Channel,
    producers: u64,
}

/// Resizes a channel from a thread of its own until it is dropped: the runtime's timers are too coarse.
struct Resizer {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u32>>,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let runtime = runtime.expect("a runtime");
    let cases: Vec<Case> = [1, 4]
        .into_iter()
        .flat_map(|producers| Channel::ALL.map(|channel| Case { channel, producers }))
        .collect();
    let rounds = measure(&runtime, &cases);
    let mut all_hold = true;
    println!(
        "{:<26} {:>9} {:>9} {:>10} {:>24}",
        format!("{ROUNDS} rounds"),
        "producers",
        "ns each",
        "million/s",
        "times tokio (quartiles)"
    );
    for (at, case) in cases.iter().enumerate() {
        let base = if case.producers == 1 { 0 } else { Channel::ALL.len() };
        let [_, ns, _] = quartiles(rounds.iter().map(|round| round[at]));
        let [low, ratio, high] = quartiles(rounds.iter().map(|round| round[base] / round[at]));
        let verdict = match case.target() {
            None => String::new(),
            Some(target) => {
                all_hold &= ratio >= target;
                format!("  {} (at least {target:.1})", verdict(ratio >= target))
            }
        };
        println!(
            "{:<26} {:>9} {ns:>9.1} {:>10.2} {:>24}{verdict}",
            case.channel.name(),
            case.producers,
            1e3 / ns,
            format!("{ratio:.2} ({low:.2} .. {high:.2})"),
        );
    }
    all_hold &= print_resize();
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Nanoseconds a message, by round and case.
fn measure(runtime: &Runtime, cases: &[Case]) -> Vec<Vec<f64>> {
    let mut order: Vec<usize> = (0..cases.len()).collect();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    // A round that is thrown away warms caches and branch predictors.
    (0..=ROUNDS)
        .map(|_| {
            shuffle(&mut order, &mut dice);
            let mut round = vec![0.0; cases.len()];
            for &at in &order {
                round[at] = cases[at].time(runtime);
            }
            round
        })
        .skip(1)
        .collect()
}

fn shuffle(order: &mut [usize], dice: &mut u64) {
    for last in (1..order.len()).rev() {
        // xorshift64
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        order.swap(last, (*dice % (last as u64 + 1)) as usize);
    }
}

fn quartiles(samples: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| samples[samples.len() * quarter / 4])
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSED" }
}

/// What one resize costs, with 64 and with 100,000 messages in the channel.
fn print_resize() -> bool {
    const RESIZES: u32 = 20_000;
    [64, 100_000].into_iter().all(|queued| {
        let (sender, _receiver) = windowed(Window::of_items(queued));
        for number in 0..queued {
            assert!(sender.try_send(Single(number)).is_ok(), "there is room");
        }
        let gauge = sender.gauge();
        let [low, ns, high] = quartiles((0..ROUNDS).map(|_| {
            let start = Instant::now();
            for step in 0..RESIZES {
                gauge.resize(black_box(window(step)));
            }
            start.elapsed().as_nanos() as f64 / f64::from(RESIZES)
        }));
        let holds = ns < RESIZE_NS_MAX;
        println!(
            "resize with {queued:>7} queued: {ns:.1} ns ({low:.1} .. {high:.1})  {} (under {RESIZE_NS_MAX:.0})",
            verdict(holds)
        );
        holds
    })
}

/// Windows of half to all of the others' capacity: never more than they have.
fn window(step: u32) -> Window {
    let items = CAPACITY / 4 * [4, 2, 3, 4, 3, 2][step as usize % 6];
    Window { items, bytes: u64::from(items) * 64 }
}

fn message(number: u64) -> Message {
    Message([black_box(number); 8])
}

/// Runs producers and a receiver as tasks. Nanoseconds until the receiver has ended.
fn race<P, R>(runtime: &Runtime, producers: impl Iterator<Item = P>, receiver: R) -> f64
where
    P: Future<Output = ()> + Send + 'static,
    R: Future<Output = u64> + Send + 'static,
{
    runtime.block_on(async {
        let start = Instant::now();
        let receiver = tokio::spawn(receiver);
        let producers: Vec<_> = producers.map(tokio::spawn).collect();
        let received = receiver.await.expect("it does not panic");
        let each = start.elapsed().as_nanos() as f64 / received as f64;
        for producer in producers {
            producer.await.expect("it does not panic");
        }
        each
    })
}

/// One message at a time through a channel with these names for its ends' methods.
macro_rules! one_by_one {
    (
        $case:expr, $runtime:expr, $channel:expr,
        $send:ident, $recv:ident, $some:pat => $message:expr
    ) => {{
        let (sender, receiver) = $channel;
        #[allow(unused_mut)]
        let mut receiver = receiver;
        let each = MESSAGES / $case.producers;
        let senders = vec![sender; $case.producers as usize];
        let producers = senders.into_iter().map(|sender| async move {
            for number in 0..each {
                assert!(sender.$send(message(number)).await.is_ok());
            }
        });
        race($runtime, producers, async move {
            let mut received = 0;
            while let $some = receiver.$recv().await {
                black_box($message.0[0]);
                received += 1;
            }
            received
        })
    }};
}

// === impl Message ===

impl Weigh for Message {
    fn weight(&self) -> Weight {
        Weight::one(64)
    }
}

// === impl Channel ===

impl Channel {
    const ALL: [Self; 8] = [
        Self::Tokio,
        Self::Flume,
        Self::Kanal,
        Self::Crossfire,
        Self::Async,
        Self::Windowed,
        Self::TokioChunks,
        Self::WindowedChunks,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Tokio => "tokio mpsc",
            Self::Flume => "flume",
            Self::Kanal => "kanal",
            Self::Crossfire => "crossfire",
            Self::Async => "async-channel",
            Self::Windowed => "windowed, resized",
            Self::TokioChunks => "tokio mpsc of vectors",
            Self::WindowedChunks => "windowed, resized, by 64",
        }
    }
}

// === impl Case ===

impl Case {
    /// How many times faster than tokio's channel one by one it must be.
    fn target(self) -> Option<f64> {
        match (self.channel, self.producers) {
            (Channel::Windowed, 1) => Some(1.0),
            (Channel::Windowed, _) => Some(2.0),
            (Channel::WindowedChunks, _) => Some(15.0),
            _ => None,
        }
    }

    fn time(self, runtime: &Runtime) -> f64 {
        let capacity = CAPACITY as usize;
        match self.channel {
            Channel::Tokio => {
                let channel = tokio::sync::mpsc::channel(capacity);
                one_by_one!(self, runtime, channel, send, recv, Some(message) => message)
            }
            Channel::Flume => {
                let channel = flume::bounded(capacity);
                one_by_one!(self, runtime, channel, send_async, recv_async, Ok(message) => message)
            }
            Channel::Kanal => {
                let channel = kanal::bounded_async(capacity);
                one_by_one!(self, runtime, channel, send, recv, Ok(message) => message)
            }
            Channel::Crossfire => {
                let channel = crossfire::mpsc::bounded_async(capacity);
                one_by_one!(self, runtime, channel, send, recv, Ok(message) => message)
            }
            Channel::Async => {
                let channel = async_channel::bounded(capacity);
                one_by_one!(self, runtime, channel, send, recv, Ok(message) => message)
            }
            Channel::Windowed => {
                let channel = windowed(window(0));
                let _resizer = Resizer::start(channel.0.gauge());
                one_by_one!(self, runtime, channel, send, recv, Some(message) => message)
            }
            Channel::TokioChunks => self.time_tokio_chunks(runtime),
            Channel::WindowedChunks => self.time_windowed_chunks(runtime),
        }
    }

    fn time_tokio_chunks(self, runtime: &Runtime) -> f64 {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(CAPACITY as usize / CHUNK);
        let chunks = CHUNKED_MESSAGES / self.producers / CHUNK as u64;
        let senders = vec![sender; self.producers as usize];
        let producers = senders.into_iter().map(|sender| async move {
            for _ in 0..chunks {
                let chunk: Vec<_> = (0..CHUNK as u64).map(message).collect();
                assert!(sender.send(chunk).await.is_ok());
            }
        });
        race(runtime, producers, async move {
            let mut received = 0;
            while let Some(chunk) = receiver.recv().await {
                for message in &chunk {
                    black_box(message.0[0]);
                }
                received += chunk.len() as u64;
            }
            received
        })
    }

    fn time_windowed_chunks(self, runtime: &Runtime) -> f64 {
        let (sender, mut receiver) = windowed(window(0));
        let _resizer = Resizer::start(sender.gauge());
        let chunks = CHUNKED_MESSAGES / self.producers / CHUNK as u64;
        let senders = vec![sender; self.producers as usize];
        let producers = senders.into_iter().map(|sender| async move {
            let mut chunk = Vec::with_capacity(CHUNK);
            for _ in 0..chunks {
                chunk.extend((0..CHUNK as u64).map(message));
                assert!(sender.send_batch(&mut chunk).await.is_ok());
            }
        });
        race(runtime, producers, async move {
            let mut received = 0;
            let mut chunk = Vec::with_capacity(CHUNK);
            while receiver.recv_many(&mut chunk, CHUNK).await > 0 {
                for message in &chunk {
                    black_box(message.0[0]);
                }
                received += chunk.len() as u64;
                chunk.clear();
            }
            received
        })
    }
}

// === impl Resizer ===

impl Resizer {
    fn start(gauge: WindowGauge) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut resizes = 0_u32;
            loop {
                gauge.resize(window(resizes));
                resizes += 1;
                if stopped.load(Ordering::Relaxed) {
                    return resizes;
                }
                std::thread::sleep(RESIZE_EVERY);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Resizer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let resizes = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(resizes.is_some_and(|resizes| resizes.is_ok_and(|resizes| resizes > 0)));
    }
}
