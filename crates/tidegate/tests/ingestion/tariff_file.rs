//! Files of tariffs: the ones we show, and everything that can be wrong with one.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tidegate::tariff::{Days, Period, PriceSpec, TariffFile, TariffFileError, Tenants, time_ns};

const GUIDE: &str = include_str!("../../../../docs/tariffs.md");

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn utc(text: &str) -> i64 {
    time_ns(text, "UTC").unwrap()
}

/// Every complete file that the guide shows.
fn shown() -> Vec<&'static str> {
    let blocks = GUIDE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains("[[tariff]]")).collect()
}

#[track_caller]
fn wrong(text: &str, expected: &[(usize, &str)]) {
    let errors = TariffFile::parse("t.toml", text).unwrap_err();
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (line, says)) in told.iter().zip(expected) {
        assert!(told.starts_with(&format!("{line}: ")), "line {line} is not that of {told}");
        assert!(told.contains(says), "{says:?} is not in {told}");
    }
}

/// A tariff that is right, with some lines more. The first of them is line 5.
fn with(lines: &str) -> String {
    format!("[[tariff]]\nname = \"a\"\ntenants = \"*\"\nmeter = \"m\"\n{lines}\n")
}

#[test]
fn the_files_that_are_shown_are_right_and_raise_no_warning() {
    let blocks = shown();
    assert!(blocks.len() >= 3, "flat, by hours and by tiers");
    let example = std::fs::read_to_string(root("deploy/tariffs.example.toml")).unwrap();
    for text in blocks.into_iter().chain([example.as_str()]) {
        let file =
            TariffFile::parse("shown", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(file.warnings(utc("2026-06-01")), [], "{text}");
    }
}

#[test]
fn the_guide_names_every_key() {
    let keys = [
        "name",
        "tenants",
        "meter",
        "currency",
        "per",
        "time_zone",
        "effective_from",
        "effective_until",
        "price",
        "tiers",
        "period",
        "days",
        "from",
        "to",
        "up_to",
    ];
    for key in keys {
        assert!(GUIDE.contains(&format!("| `{key}` |")), "{key} has no row in docs/tariffs.md");
    }
    for reason in tidegate::usage::Fallback::ALL {
        assert!(GUIDE.contains(&format!("| `{reason}` |")), "{reason} has no row");
    }
}

#[test]
fn the_examples_price_as_the_guide_says() {
    let price = |text: &str, meter: &str, at: &str, used: i64, quantity: i64| {
        let file = TariffFile::parse("shown", text).unwrap();
        let at_ns = time_ns(at, "Europe/Berlin").unwrap();
        let quote = file.tariffs().quote(("acme", meter), at_ns, used.into(), quantity.into());
        assert_eq!(quote.charge.fallback, None);
        quote.charge.amount.normalize().to_string()
    };
    let blocks = shown();
    assert_eq!(price(blocks[0], "tokens.output", "2026-06-15", 0, 2_000_000), "0.3");
    for (at, amount) in
        [("2026-06-15T12:00", "2.52"), ("2026-06-15T21:00", "1.44"), ("2026-06-13T12:00", "1.44")]
    {
        assert_eq!(price(blocks[1], "gpu.seconds", at, 0, 3_600), amount, "{at}");
    }
    assert_eq!(price(blocks[2], "tokens.output", "2026-06-15", 90_000_000, 20_000_000), "11");
}

#[test]
fn every_key_is_understood() {
    let text = r#"
        [fallback]
        name = "unpriced"
        price = "0.01"
        currency = "EUR"
        [[tariff]]
        name = "all"
        tenants = ["x", "y"]
        meter = "tokens.*"
        currency = "EUR"
        per = 1_000
        time_zone = "Asia/Tokyo"
        effective_from = 2026-01-01
        effective_until = 2026-12-31T12:30:00
        period = "day"
        price = 5
        [[tariff.window]]
        name = "night"
        days = ["fri", "weekend"]
        from = 22:00:00
        to = "24:00"
        tiers = [{ up_to = "0.5", price = 2 }, { price = "1.25" }]
    "#;
    let file = TariffFile::parse("t.toml", text).unwrap();
    let fallback = file.tariffs().fallback();
    assert_eq!((fallback.name.as_str(), fallback.currency.code()), ("unpriced", "EUR"));
    let spec = &file.tariffs().specs()[0];
    assert_eq!(spec.tenants, Tenants::Listed(vec!["x".to_owned(), "y".to_owned()]));
    assert_eq!((spec.per, spec.period), (1_000, Some(Period::Day)));
    assert_eq!(spec.effective_until.unwrap().to_string(), "2026-12-31 12:30:00");
    assert_eq!(spec.price, Some(PriceSpec::Flat(5.into())));
    let night = &spec.windows[0];
    assert_eq!((night.from_minute, night.to_minute), (22 * 60, 24 * 60));
    assert_eq!(night.days, Days::WEEKEND.with(4));
    assert_eq!(night.price.tiers()[0].up_to.unwrap().to_string(), "0.5");
}

#[test]
fn what_is_not_said_has_a_default() {
    let file = TariffFile::parse("t.toml", &with("price = 1")).unwrap();
    let spec = &file.tariffs().specs()[0];
    assert_eq!((spec.per, spec.time_zone.as_str(), spec.currency.code()), (1, "UTC", "USD"));
    assert_eq!(TariffFile::parse("t.toml", "").unwrap().tariffs().specs(), []);
}

#[test]
fn a_float_is_refused_with_the_reason_and_the_fix() {
    let fix = "0.06 is a binary float, which is not exact; expected a number in quotes, such as \"0.06\", \
               or a whole number; put it in quotes: \"0.06\"";
    wrong(&with("price = 0.06"), &[(5, fix)]);
    wrong(
        &with("period = \"day\"\ntiers = [{ up_to = 1.5, price = 1 }]"),
        &[(6, "put it in quotes: \"1.5\"")],
    );
    wrong("[fallback]\nprice = 1e3", &[(2, "binary float")]);
}

#[test]
fn unknown_keys_name_the_nearest() {
    wrong("[[tarif]]\nx = 1", &[(1, "did you mean tariff?")]);
    wrong(&with("price = 1\ntimezone = \"UTC\""), &[(6, "did you mean time_zone?")]);
    wrong(&with("price = 1\nfoo = 1"), &[(6, "one of name, tenants")]);
    let window = "[[tariff.window]]\nfrom = \"00:00\"\nto = \"24:00\"\nprize = \"1\"";
    wrong(&with(window), &[(5, "it has no price"), (8, "did you mean price?")]);
    wrong(
        &with("period = \"day\"\ntiers = [\n  { upto = 5, price = 1 },\n]"),
        &[(7, "did you mean up_to?")],
    );
}

#[test]
fn words_of_the_wrong_kind_are_explained() {
    wrong(&with("price = \"cheap\""), &[(5, "the text \"cheap\" is given")]);
    wrong(&with("price = true"), &[(5, "true is given")]);
    wrong(&with("price = 1\nper = \"1000\""), &[(6, "without quotes")]);
    wrong(&with("price = 1\nper = -5"), &[(6, "the number -5")]);
    wrong(&with("price = 1\ncurrency = \"euro\""), &[(6, "three capital letters")]);
    wrong(&with("price = 1\nperiod = \"week\""), &[(6, "\"day\", \"month\" or \"year\"")]);
    wrong(&with("price = 1\ntime_zone = \"Berlin\""), &[(6, "did you mean \"Europe/Berlin\"?")]);
    wrong(
        &with("price = 1\ntime_zone = \"Europe/Berlim\""),
        &[(6, "did you mean \"Europe/Berlin\"?")],
    );
    wrong(&with("price = 1\neffective_from = \"2026-01-01\""), &[(6, "without quotes")]);
    wrong(
        &with("price = 1\neffective_from = 2026-01-01T00:00:00Z"),
        &[(6, "leave the offset out")],
    );
    wrong(&with("window = 5\nprice = 1"), &[(5, "[[tariff.window]]")]);
    wrong("tariff = 5", &[(1, "[[tariff]]")]);
    wrong("fallback = 5", &[(1, "[fallback]")]);
    let window = |days: &str, from: &str| {
        with(&format!("[[tariff.window]]\ndays = {days}\nfrom = {from}\nto = \"24:00\"\nprice = 1"))
    };
    wrong(&window("[\"monday\"]", "\"00:00\""), &[(6, "did you mean \"mon\"?")]);
    wrong(&window("\"weekday\"", "\"00:00\""), &[(6, "did you mean \"weekdays\"?")]);
    for clock in ["\"7:00\"", "\"24:01\"", "\"07:60\"", "\"0700\"", "7", "07:00:30", "\"\""] {
        wrong(&window("\"all\"", clock), &[(7, "a time such as \"07:30\"")]);
    }
}

#[test]
fn all_errors_are_told_at_once_by_line() {
    let text = "\
[[tariff]]
name = \"a\"
meter = \"to*\"
per = 7
price = \"1\"
tenant = \"*\"
[[tariff]]
name = \"b\"
tenants = \"*\"
meter = \"m\"
price = \"-1\"
[[tariff]]
name = \"c\"
tenants = \"*\"
meter = \"m\"
tiers = []
";
    wrong(
        text,
        &[
            (1, "tariff \"a\": tenants is missing"),
            (3, "tariff \"a\", meter: the meter \"to*\""),
            (5, "tariff \"a\", price: 1 per 7"),
            (6, "did you mean tenants?"),
            (11, "0 or more"),
            (12, "the tariffs \"b\" and \"c\" both price \"m\" of \"*\""),
            (16, "there are 0 tiers"),
        ],
    );
}

#[test]
fn text_that_is_no_toml_says_where() {
    wrong("[[tariff]]\nname = \"a\nx", &[(2, "correct this line"), (3, "correct this line")]);
    let unreadable = TariffFile::read(&root("no/such/file.toml")).unwrap_err();
    assert!(matches!(unreadable, TariffFileError::Unreadable { .. }), "{unreadable}");
    assert!(unreadable.to_string().contains("no/such/file.toml"));
}

#[test]
fn warnings_have_lines() {
    let file =
        TariffFile::parse("t.toml", &with("price = 1\neffective_until = 2026-01-01")).unwrap();
    assert_eq!(file.warnings(utc("2025-12-31")), []);
    let warnings = file.warnings(utc("2026-06-01"));
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].line, warnings[0].about.as_str()), (6, "tariff \"a\""));
}

proptest! {
    /// Parts of a right file in any order and number: nothing panics, and an error is on a line that exists.
    #[test]
    fn no_file_panics(parts in prop::collection::vec(0..24_usize, 0..30)) {
        const PARTS: [&str; 24] = [
            "[[tariff]]\n", "name = \"a\"\n", "tenants = \"*\"\n", "tenants = []\n", "meter = \"m.*\"\n",
            "price = \"0.1\"\n", "price = 0.1\n", "per = 3\n", "per = 0\n", "time_zone = \"UTC\"\n",
            "effective_from = 9999-12-31\n", "effective_until = 0001-01-01\n", "period = \"day\"\n",
            "tiers = [{ price = 1 }]\n", "tiers = [{ up_to = 1, price = 1 }, {}]\n", "[[tariff.window]]\n",
            "days = \"weekend\"\n", "from = \"22:00\"\n", "to = \"06:00\"\n", "to = 06:00:00\n",
            "[fallback]\n", "currency = \"EUR\"\n", "x = 1\n", "= broken\n",
        ];
        let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
        match TariffFile::parse("t.toml", &text) {
            Ok(file) => drop(file.warnings(0)),
            Err(errors) => {
                for error in errors.iter() {
                    prop_assert!((1..=text.lines().count() + 1).contains(&error.line), "{error}\n{text}");
                }
            }
        }
    }
}
