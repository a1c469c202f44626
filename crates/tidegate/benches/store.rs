//! What it costs to make records durable: in a folder, beside a plain log file and a row for each record, and in
//! PostgreSQL.
//!
//! `cargo bench -p tidegate --bench store`
//!
//! Every round measures every case, in turn; a ratio is taken within a round. CPU is that of this whole process,
//! the engine's own threads included; PostgreSQL's is not in it. A round is too short for the engine to write
//! tables, so a long run follows that has it write and merge many. Exit code 1 if a record in a folder takes
//! more CPU than [`CPU_US_MAX`] in either.

#[path = "../tests/support/mod.rs"]
mod support;

use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use rust_decimal::Decimal;
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use support::folder::TempFolder;
use support::postgres::Postgres;
use tidegate::store::{Appended, FjallStore, Origin, PostgresStore, PricedBatch, Store};
use tidegate::usage::{Currency, PricedRecord, UsageCharge, UsageRecord};
use tokio::runtime::Runtime;

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 7;
/// So many a case and round: some seconds of a busy sender.
const RECORDS: usize = 200_000;
const BATCHES: [usize; 2] = [1_000, 10_000];
/// About 75 MB of blocks: more than ten times what waits in memory.
const LONG_RECORDS: usize = 3_000_000;
/// A core does 150,000 records a second with less than a quarter of its time.
const CPU_US_MAX: f64 = 1.5;
const START_NS: i64 = 1_700_000_000_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// The same numbers in a file, synced after each batch. No sums, no index, no repeats. The floor.
    LogFile,
    /// Our store in a folder.
    Folder,
    /// The same engine with a row for each record, and no sums.
    RowEach,
    /// Our store in PostgreSQL on this machine, which syncs.
    Postgres,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    seconds: f64,
    cpu_seconds: f64,
}

fn main() -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let server = Postgres::start(&[]);
    let mut all_hold = true;
    for size in BATCHES {
        let batches = batches(size);
        let rounds: Vec<_> = (0..ROUNDS)
            .map(|round| Case::ALL.map(|case| measure(case, &runtime, &server, round, &batches)))
            .collect();
        println!("batches of {size}, {ROUNDS} rounds of {RECORDS} records");
        println!("{:<10} {:>12} {:>14} {:>10}", "", "records/s", "CPU us/record", "/ LogFile");
        for case in Case::ALL {
            all_hold &= print(case, &rounds);
        }
    }
    all_hold &= print_long_run(&runtime);
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same records over and over, each time under new numbers and later. Copying them is in the cost too.
fn print_long_run(runtime: &Runtime) -> bool {
    let size = BATCHES[1];
    let batches = batches(size);
    let folder = TempFolder::new("bench");
    let clock = Clock::start();
    runtime.block_on(async {
        let store = FjallStore::open(folder.path().join("store")).await.expect("a store");
        for (seq, number) in (1..).zip(0..LONG_RECORDS / size) {
            let mut batch = batches[number % batches.len()].clone();
            batch.origin =
                Some(Origin { sender: Arc::from("bench"), owner: None, seq, settled: seq - 1 });
            let later_ns = (number / batches.len() * RECORDS) as i64 * 1_000_000;
            batch.records.iter_mut().for_each(|priced| priced.record.time_ns += later_ns);
            assert_eq!(store.append(vec![batch]).await.expect("it is stored"), [Appended::New]);
        }
        store.close().await;
    });
    let cost = clock.stop();
    let records = LONG_RECORDS as f64;
    let cpu_us = cost.cpu_seconds * 1e6 / records;
    println!(
        "long run, {LONG_RECORDS} records in batches of {size}, tables included: {:.0} records/s, {cpu_us:.2} CPU \
         us/record",
        records / cost.seconds
    );
    cpu_us <= CPU_US_MAX
}

fn print(case: Case, rounds: &[[Cost; Case::ALL.len()]]) -> bool {
    let records = RECORDS as f64;
    let rate = median(rounds.iter().map(|round| records / round[case as usize].seconds));
    let cpu_us =
        median(rounds.iter().map(|round| round[case as usize].cpu_seconds * 1e6 / records));
    let ratio = median(rounds.iter().map(|round| round[case as usize].seconds / round[0].seconds));
    let holds = case != Case::Folder || cpu_us <= CPU_US_MAX;
    let verdict = match case {
        Case::Folder if holds => "ok",
        Case::Folder => "MISSED",
        _ => "",
    };
    println!("{:<10} {rate:>12.0} {cpu_us:>14.2} {ratio:>10.1}  {verdict}", format!("{case:?}"));
    holds
}

fn measure(
    case: Case,
    runtime: &Runtime,
    server: &Postgres,
    round: usize,
    batches: &[PricedBatch],
) -> Cost {
    let folder = TempFolder::new("bench");
    match case {
        Case::LogFile => log_file(&folder, batches),
        Case::RowEach => row_each(&folder, batches),
        Case::Folder => runtime.block_on(async {
            let store = FjallStore::open(folder.path().join("store")).await.expect("a store");
            let cost = append_all(&store, batches).await;
            store.close().await;
            cost
        }),
        Case::Postgres => runtime.block_on(async {
            let url = server.url(&format!("schema=bench_{}_{round}", batches.len()));
            append_all(&PostgresStore::connect(&url).await.expect("a store"), batches).await
        }),
    }
}

async fn append_all(store: &impl Store, batches: &[PricedBatch]) -> Cost {
    // The caller's copies are not the store's cost.
    let copies: Vec<_> = batches.iter().map(|batch| vec![batch.clone()]).collect();
    let clock = Clock::start();
    for batch in copies {
        assert_eq!(store.append(batch).await.expect("it is stored"), [Appended::New]);
    }
    clock.stop()
}

fn log_file(folder: &TempFolder, batches: &[PricedBatch]) -> Cost {
    let mut file = File::create(folder.path().join("log")).expect("a file");
    let clock = Clock::start();
    let mut bytes = Vec::new();
    for batch in batches {
        bytes.clear();
        for priced in &batch.records {
            bytes.extend_from_slice(&numbers(priced));
        }
        file.write_all(&bytes).expect("there is room");
        file.sync_data().expect("it is durable");
    }
    clock.stop()
}

fn row_each(folder: &TempFolder, batches: &[PricedBatch]) -> Cost {
    let db = Database::builder(folder.path()).open().expect("a database");
    let rows = db.keyspace("rows", KeyspaceCreateOptions::default).expect("a keyspace");
    let clock = Clock::start();
    let mut next = 0_u64;
    for batch in batches {
        let mut write = db.batch().durability(Some(PersistMode::SyncData));
        for priced in &batch.records {
            let record = &priced.record;
            let names = [&*record.tenant, &record.meter, &record.labels, &priced.charge.tariff];
            let value = [&numbers(priced)[..], names.join("\0").as_bytes()].concat();
            write.insert(&rows, next.to_be_bytes(), value);
            next += 1;
        }
        write.commit().expect("it is durable");
    }
    clock.stop()
}

/// About what a record takes in a block: its numbers, and those of its names.
fn numbers(priced: &PricedRecord) -> [u8; 26] {
    let record = &priced.record;
    let mut bytes = [0; 26];
    bytes[..8].copy_from_slice(&record.time_ns.to_be_bytes());
    bytes[8..16].copy_from_slice(&(record.quantity.mantissa() as i64).to_be_bytes());
    bytes[16..24].copy_from_slice(&(priced.charge.amount.mantissa() as i64).to_be_bytes());
    bytes[24] = record.tenant.len() as u8;
    bytes[25] = record.meter.len() as u8;
    bytes
}

/// 50 tenants with 4 meters each, a thousand records a second.
fn batches(size: usize) -> Vec<PricedBatch> {
    let tenants: Vec<Arc<str>> = (0..50).map(|number| format!("tenant-{number}").into()).collect();
    let meters: Vec<Arc<str>> =
        ["tokens.input", "tokens.output", "seconds.gpu", "requests"].map(Arc::from).to_vec();
    let (labels, tariff) =
        (Arc::<str>::from("model=large,region=eu"), Arc::<str>::from("standard"));
    let record = |number: usize| PricedRecord {
        record: UsageRecord {
            tenant: tenants[number * 7 % 50].clone(),
            meter: meters[number % 4].clone(),
            quantity: Decimal::new((number * 31 % 100_000) as i64, 2),
            time_ns: START_NS + number as i64 * 1_000_000,
            labels: labels.clone(),
        },
        charge: UsageCharge {
            amount: Decimal::new((number * 17 % 1_000_000) as i64, 6),
            currency: Currency::USD,
            tariff: tariff.clone(),
            fallback: None,
        },
    };
    let batch = |(seq, first): (u64, usize)| PricedBatch {
        source: Arc::from("bench"),
        origin: Some(Origin { sender: Arc::from("bench"), owner: None, seq, settled: seq - 1 }),
        records: (first..first + size).map(record).collect(),
    };
    (1..).zip((0..RECORDS).step_by(size)).map(batch).collect()
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Time that passes, and time that this process computes.
struct Clock {
    start: Instant,
    cpu_seconds: f64,
}

impl Clock {
    fn start() -> Self {
        Self { cpu_seconds: cpu_seconds(), start: Instant::now() }
    }

    fn stop(self) -> Cost {
        let seconds = self.start.elapsed().as_secs_f64();
        Cost { seconds, cpu_seconds: cpu_seconds() - self.cpu_seconds }
    }
}

/// User and system time, in hundredths of a second, which is what Linux counts in.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks =
        after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

impl Case {
    const ALL: [Self; 4] = [Self::LogFile, Self::Folder, Self::RowEach, Self::Postgres];
}
