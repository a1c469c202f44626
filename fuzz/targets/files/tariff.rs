use std::sync::Arc;
use tidegate::tariff::{Evaluator, TariffFile};
use tidegate::usage::{UsageRecord, parse_quantity};

/// From long before any tariff to long after, at odd times of the day: 1677, 1970, 2024 in a leap day, 2262.
const TIMES_NS: [i64; 5] =
    [i64::MIN, 0, 1_709_204_399_999_999_999, 1_792_000_000_000_000_000, i64::MAX];

/// Reads tariffs and prices usage by them. Every error is told with its line, and what is priced is counted once.
pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let file = match TariffFile::parse("f.toml", &text) {
        Ok(file) => file,
        Err(errors) => {
            assert!(errors.iter().next().is_some() && errors.to_string().contains("f.toml"));
            return false;
        }
    };
    let tariffs = file.tariffs();
    for time_ns in TIMES_NS {
        let _ = file.warnings(time_ns);
    }
    let mut evaluator = Evaluator::new(Arc::clone(tariffs));
    for spec in tariffs.specs() {
        for time_ns in TIMES_NS {
            for quantity in ["0", "-1.5", "1000001", "79228162514264337593543950335"] {
                price(&mut evaluator, &spec.meter, quantity, time_ns);
            }
        }
    }
    true
}

fn price(evaluator: &mut Evaluator, meter: &str, quantity: &str, time_ns: i64) {
    let record = UsageRecord {
        tenant: "acme".into(),
        meter: meter.trim_end_matches('*').into(),
        quantity: parse_quantity(quantity.as_bytes()).expect("a number"),
        time_ns,
        labels: "".into(),
    };
    let batch = evaluator.begin_batch();
    for key in evaluator.missing(std::slice::from_ref(&record)) {
        evaluator.load(&key, parse_quantity(b"0").expect("a number"));
    }
    let priced = evaluator.price(record.clone());
    assert_eq!(priced.record, record);
    evaluator.uncount(&record);
    evaluator.evict(batch);
}
