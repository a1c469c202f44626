//! What pricing adds to a record: flat, by hours and by tiers, from one to 50,000 tenants, in order and not.
//!
//! `cargo bench -p tidegate --bench tariff`
//!
//! The target is 300 ns for a record by hours with tiers, the sums that it needs asked for and known. Beside it in
//! every round stands a hash of a 4 KiB body, as a measure of the machine. Exit code 1 if the target is missed.

use rust_decimal::Decimal;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tidegate::tariff::{
    Days, Evaluator, FallbackSpec, Period, PriceSpec, TariffSpec, Tariffs, Tenants, TierSpec,
    WindowSpec,
};
use tidegate::usage::{Currency, UsageRecord};

const ROUNDS: usize = 21;
const RECORDS: usize = 50_000;
const BATCH: usize = 1_000;
const TARGET_NS: f64 = 300.0;
/// 2026-06-15 00:00 UTC, a Monday.
const MONDAY_NS: i64 = 1_781_481_600_000_000_000;

struct Case {
    name: &'static str,
    evaluator: Evaluator,
    records: Vec<UsageRecord>,
    /// Whether the target binds it.
    judged: bool,
}

/// How records name their tenants and meters, and when they are.
#[derive(Clone, Copy)]
struct Load {
    tenants: usize,
    /// Whether records of one name share its memory, as a parser's do.
    shared: bool,
    /// From one record to the next; negative is at random within a month.
    step_ns: i64,
}

fn main() -> ExitCode {
    let mut cases = cases();
    let mut samples = vec![Vec::new(); cases.len() + 1];
    for _ in 0..ROUNDS {
        for (case, samples) in cases.iter_mut().zip(&mut samples) {
            samples.extend(time(case));
        }
        samples[cases.len()].push(time_hash());
    }
    let medians: Vec<_> = samples.iter_mut().map(|samples| median(samples)).collect();
    let yardstick = medians[cases.len()];
    let mut all_hold = true;
    println!("{:<44} {:>9} {:>16} {:>10}", "ask and price", "ns each", "hashes of 4 KiB", "target");
    for (case, ns) in cases.iter().zip(&medians) {
        let holds = *ns < TARGET_NS;
        all_hold &= holds || !case.judged;
        let verdict = match (case.judged, holds) {
            (false, _) => "",
            (true, true) => "< 300 ns  holds",
            (true, false) => "< 300 ns  MISSED",
        };
        println!("{:<44} {ns:>9.0} {:>16.2} {verdict:>17}", case.name, ns / yardstick);
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cases() -> Vec<Case> {
    let few = Load { tenants: 100, shared: true, step_ns: 7_000_000 };
    let case = |name, spec, load, judged| Case {
        name,
        evaluator: Evaluator::new(tariffs(spec)),
        records: records(load),
        judged,
    };
    vec![
        case("flat, 100 tenants", flat(), few, false),
        case("hours and tiers, 1 tenant", hours_and_tiers(), Load { tenants: 1, ..few }, true),
        case("hours and tiers, 100 tenants", hours_and_tiers(), few, true),
        case("… names not shared", hours_and_tiers(), Load { shared: false, ..few }, true),
        case("… 5,000 tenants", hours_and_tiers(), Load { tenants: 5_000, ..few }, true),
        case("… 50,000 tenants", hours_and_tiers(), Load { tenants: 50_000, ..few }, false),
        case("… at random within a month", hours_and_tiers(), Load { step_ns: -1, ..few }, false),
        case("an unknown meter", TariffSpec { meter: "other".to_owned(), ..flat() }, few, false),
    ]
}

fn tariffs(spec: TariffSpec) -> Arc<Tariffs> {
    Arc::new(Tariffs::new(vec![spec], FallbackSpec::default()).expect("tariffs are right"))
}

fn flat() -> TariffSpec {
    TariffSpec {
        name: "tokens".to_owned(),
        tenants: Tenants::All,
        meter: "tokens.*".to_owned(),
        currency: Currency::USD,
        per: 1_000_000,
        time_zone: "Europe/Berlin".to_owned(),
        effective_from: None,
        effective_until: None,
        price: Some(PriceSpec::Flat(Decimal::new(15, 2))),
        windows: Vec::new(),
        period: Some(Period::Month),
    }
}

fn hours_and_tiers() -> TariffSpec {
    let tiers = |price: i64| {
        let tier = |up_to: Option<i64>, price| TierSpec {
            up_to: up_to.map(Decimal::from),
            price: Decimal::new(price, 2),
        };
        PriceSpec::Tiers(vec![
            tier(Some(10_000), price),
            tier(Some(1_000_000), price - 2),
            tier(None, price - 4),
        ])
    };
    let window = |name: &str, days, from_minute, to_minute, price| WindowSpec {
        name: name.to_owned(),
        days,
        from_minute,
        to_minute,
        price: tiers(price),
    };
    TariffSpec {
        price: Some(tiers(12)),
        windows: vec![
            window("day", Days::WEEKDAYS, 7 * 60, 17 * 60, 20),
            window("evening", Days::WEEKDAYS, 17 * 60, 20 * 60, 30),
        ],
        ..flat()
    }
}

fn records(load: Load) -> Vec<UsageRecord> {
    let names: Vec<Arc<str>> =
        (0..load.tenants).map(|number| format!("tenant-{number:05}").into()).collect();
    let meter: Arc<str> = "tokens.output".into();
    let name = |name: &Arc<str>| if load.shared { Arc::clone(name) } else { Arc::from(&**name) };
    let record = |number: usize| {
        let chance = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let step = if load.step_ns < 0 {
            (chance % 2_592_000) as i64 * 1_000_000_000
        } else {
            number as i64 * load.step_ns
        };
        UsageRecord {
            tenant: name(&names[chance as usize % names.len()]),
            meter: name(&meter),
            quantity: Decimal::from(chance % 4_000),
            time_ns: MONDAY_NS + step,
            labels: "".into(),
        }
    };
    (0..RECORDS).map(record).collect()
}

/// As the pipeline does it, batch by batch: the time of a record in each batch, so that a batch in which the
/// machine did something else is but one of many. Records are copied before, as they come from a parser.
fn time(case: &mut Case) -> Vec<f64> {
    let mut samples = Vec::new();
    for batch in case.records.chunks(BATCH) {
        let records = batch.to_vec();
        let start = Instant::now();
        let number = case.evaluator.begin_batch();
        for key in case.evaluator.missing(&records) {
            case.evaluator.load(&key, Decimal::ZERO);
        }
        let priced: Vec<_> =
            records.into_iter().map(|record| case.evaluator.price(record)).collect();
        case.evaluator.evict(number.saturating_sub(10));
        samples.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        drop(black_box(priced));
    }
    samples
}

fn time_hash() -> f64 {
    const OPERATIONS: u32 = 2_000;
    let (state, body) = (RandomState::new(), vec![7_u8; 4096]);
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        black_box(state.hash_one(black_box(&body)));
    }
    start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
