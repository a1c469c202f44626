//! Line protocol as its senders write it: every escape, every type, and every way in which a line can be wrong.

use tidegate_core::line_protocol::{
    BlockOutcome, LineConfig, LineError, LineFault, LineOutcome, LineParser, LineWriteError,
    Precision, write_line,
};
use tidegate_core::usage::{Names, UsageRecord};

const NOW_NS: i64 = 1_700_000_000_000_000_000;

fn parse_as(config: LineConfig, line: &str) -> Result<Vec<UsageRecord>, LineError> {
    let (mut names, mut records) = (Names::default(), Vec::new());
    let outcome =
        LineParser::new(config).parse_line(line.as_bytes(), NOW_NS, &mut names, &mut records);
    assert!(outcome.is_ok() || records.is_empty(), "all of a line or nothing");
    outcome.map(|outcome| {
        assert_eq!(outcome.records, records.len());
        records
    })
}

fn parse(line: &str) -> Result<Vec<UsageRecord>, LineError> {
    parse_as(LineConfig::default(), line)
}

fn one(line: &str) -> UsageRecord {
    let mut records = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(records.len(), 1, "{line}");
    records.remove(0)
}

fn record(tenant: &str, meter: &str, quantity: &str, time_ns: i64, labels: &str) -> UsageRecord {
    UsageRecord {
        tenant: tenant.into(),
        meter: meter.into(),
        quantity: quantity.parse().unwrap(),
        time_ns,
        labels: labels.into(),
    }
}

#[test]
fn a_field_is_a_record() {
    let table = [
        ("tokens value=5", record("unassigned", "tokens", "5", NOW_NS, "")),
        ("tokens,tenant=acme value=5i 7", record("acme", "tokens", "5", 7, "")),
        ("tokens,tenant=acme output=5u -7", record("acme", "tokens.output", "5", -7, "")),
        ("  tokens   value=-5.50   9  ", record("unassigned", "tokens", "-5.50", 9, "")),
        ("tokens,b=2,tenant=x,a=1 value=1 9", record("x", "tokens", "1", 9, "a=1,b=2")),
        ("tokens,tenant=x,a=1,b=2 value=1 9", record("x", "tokens", "1", 9, "a=1,b=2")),
        ("tokens,c=3,a=1,b=2 value=1 9", record("unassigned", "tokens", "1", 9, "a=1,b=2,c=3")),
        ("m value=1.5e3 9\r", record("unassigned", "m", "1500", 9, "")),
        ("m value=1e-3 9\r\n", record("unassigned", "m", "0.001", 9, "")),
        ("m value=+.5 9\n", record("unassigned", "m", "0.5", 9, "")),
        ("größe,tenant=Bäcker value=1 9", record("Bäcker", "größe", "1", 9, "")),
        (
            "m value=9223372036854775807i 0009",
            record("unassigned", "m", "9223372036854775807", 9, ""),
        ),
    ];
    for (line, expected) in table {
        assert_eq!(one(line), expected, "{line}");
    }
}

#[test]
fn every_escape_means_what_it_stands_for() {
    let table = [
        (r"a\,b value=1 9", record("unassigned", "a,b", "1", 9, "")),
        (r"a\ b value=1 9", record("unassigned", "a b", "1", 9, "")),
        // An equals sign is nothing special in a measurement, so neither is what looks like its escape.
        (r"a\=b=c value=1 9", record("unassigned", r"a\=b=c", "1", 9, "")),
        (r"a\b\\c value=1 9", record("unassigned", r"a\b\\c", "1", 9, "")),
        (r"m,tenant=a\ b\,c\=d\e value=1 9", record(r"a b,c=d\e", "m", "1", 9, "")),
        (r"m a\ b\,c\=d=1 9", record("unassigned", "m.a b,c=d", "1", 9, "")),
        (r"m\,m a\ b=1 9", record("unassigned", "m,m.a b", "1", 9, "")),
        // Labels keep their escapes: they are a list of pairs.
        (r"m,k\ 1=a\,b,j=c\=d value=1 9", record("unassigned", "m", "1", 9, r"j=c\=d,k\ 1=a\,b")),
        (r"m,p=C:\dir\\x value=1 9", record("unassigned", "m", "1", 9, r"p=C:\dir\\x")),
        (r#"m s="a,b c=d \"e\" \\",value=1 9"#, record("unassigned", "m", "1", 9, "")),
        (r#"m value=1,s="\\" 9"#, record("unassigned", "m", "1", 9, "")),
        (r#"m s="",value=1 9"#, record("unassigned", "m", "1", 9, "")),
        // Quotes are nothing special elsewhere.
        (r#"m,k="a" value=1 9"#, record("unassigned", "m", "1", 9, r#"k="a""#)),
    ];
    for (line, expected) in table {
        assert_eq!(one(line), expected, "{line}");
    }
}

#[test]
fn each_number_of_a_line_counts_and_what_is_none_is_skipped() {
    let (mut names, mut records) = (Names::default(), Vec::new());
    let mut parser = LineParser::new(LineConfig::default());
    let line =
        br#"cpu,host=a,tenant=t idle=0.5,busy=3i,cores=8u,up=true,down=F,os="linux",value=9 5"#;
    let outcome = parser.parse_line(line, NOW_NS, &mut names, &mut records).unwrap();
    assert_eq!(outcome, LineOutcome { records: 4, fields_skipped: 3 });
    let meters: Vec<_> = records.iter().map(|record| &*record.meter).collect();
    assert_eq!(meters, ["cpu.idle", "cpu.busy", "cpu.cores", "cpu"]);
    assert!(records.iter().all(|record| (&*record.labels, record.time_ns) == ("host=a", 5)));
}

#[test]
fn nothing_is_made_of_comments_and_empty_lines() {
    for line in ["", "\n", "\r\n", "   ", "# a comment", "  # value=1", "#,= \"", "#ä"] {
        assert_eq!(parse(line), Ok(vec![]), "{line:?}");
    }
}

#[test]
fn booleans_have_five_spellings_each_and_no_other() {
    for value in ["t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"] {
        assert_eq!(one(&format!("m up={value},value=1")).meter, "m".into());
    }
    for value in ["tRUE", "yes", "fAlse", "truee"] {
        let error = parse(&format!("m up={value},value=1")).unwrap_err();
        assert_eq!(error.fault, LineFault::BadNumber, "{value}");
    }
}

#[test]
fn a_timestamp_counts_what_the_configuration_says() {
    let table = [(Precision::Ns, 3), (Precision::Us, 3_000), (Precision::Ms, 3_000_000)];
    let seconds = (Precision::S, 3_000_000_000);
    for (precision, expected) in table.into_iter().chain([seconds]) {
        let config = LineConfig { precision, ..LineConfig::default() };
        assert_eq!(parse_as(config, "m value=1 3").unwrap()[0].time_ns, expected, "{precision:?}");
    }
    for (line, expected) in [
        ("m value=1 9223372036854775807", i64::MAX),
        ("m value=1 -9223372036854775808", i64::MIN),
        ("m value=1 000000000000000000000000000000012", 12),
        ("m value=1 -0", 0),
    ] {
        assert_eq!(one(line).time_ns, expected, "{line}");
    }
}

#[test]
fn the_tenant_can_have_another_tag_and_another_default() {
    let config = LineConfig {
        tenant_tag: "customer".to_owned(),
        tenant_default: "nobody".into(),
        ..LineConfig::default()
    };
    let records = parse_as(config.clone(), "m,customer=acme,tenant=x value=1 9").unwrap();
    assert_eq!(records, [record("acme", "m", "1", 9, "tenant=x")]);
    assert_eq!(&*parse_as(config, "m value=1").unwrap()[0].tenant, "nobody");
}

#[test]
fn digits_beyond_what_a_quantity_has_are_rounded_and_never_go_by_a_float() {
    // As a float these would be 0.30000000000000004 and 9007199254740992.
    assert_eq!(one("m value=0.3").quantity.to_string(), "0.3");
    assert_eq!(one("m value=9007199254740993").quantity.to_string(), "9007199254740993");
    let long = one("m value=0.33333333333333333333333333333333333");
    assert_eq!(long.quantity.to_string(), format!("0.{}", "3".repeat(28)));
}

#[test]
fn a_wrong_line_says_what_is_wrong_and_where() {
    use LineFault as F;
    let long_name = format!("{} value=1", "n".repeat(129));
    let long_meter = format!("{} {}=1", "n".repeat(100), "f".repeat(28));
    let long_tenant = format!("m,tenant={} value=1", "t".repeat(129));
    let long_labels = format!("m,a={},b=1 value=1", "l".repeat(1_019));
    let table: [(&str, F, usize); 49] = [
        (",a=1 value=1", F::MissingMeasurement, 1),
        ("m", F::MissingFields, 2),
        ("m,a=1", F::MissingFields, 6),
        ("m ", F::MissingFields, 3),
        ("m value=1,", F::MissingFields, 11),
        ("m, value=1", F::MissingKey, 3),
        ("m,=1 value=1", F::MissingKey, 3),
        ("m,a=1,,b=2 value=1", F::MissingKey, 7),
        ("m =1", F::MissingKey, 3),
        ("m a=1,,b=1", F::MissingKey, 7),
        ("m a=1, b=1", F::MissingKey, 7),
        ("m,a value=1", F::MissingEquals, 4),
        ("m,a,b=1 value=1", F::MissingEquals, 4),
        ("m value", F::MissingEquals, 8),
        ("m value 1", F::MissingEquals, 8),
        ("m 5", F::MissingEquals, 4),
        ("m,a= value=1", F::MissingValue, 5),
        ("m,a=,b=1 value=1", F::MissingValue, 5),
        ("m,tenant= value=1", F::MissingValue, 10),
        ("m value=", F::MissingValue, 9),
        ("m a=,b=1", F::MissingValue, 5),
        ("m,a=b=c value=1", F::UnescapedEquals, 6),
        ("m,a== value=1", F::UnescapedEquals, 5),
        ("m,a=1,a=2 value=1", F::DuplicateTag, 7),
        ("m,a=1,b=1,a=2 value=1", F::DuplicateTag, 11),
        ("m,tenant=x,tenant=x value=1", F::DuplicateTag, 12),
        (r#"m s="abc"#, F::UnterminatedString, 5),
        (r#"m s="abc\"#, F::UnterminatedString, 5),
        (r#"m s="abc\",value=1"#, F::UnterminatedString, 5),
        (r#"m s="a"b,value=1"#, F::TextAfterString, 8),
        ("m value=abc", F::BadNumber, 9),
        ("m value=NaN", F::BadNumber, 9),
        ("m value=-Inf", F::BadNumber, 9),
        ("m value=1.5i", F::BadNumber, 9),
        ("m value=i", F::BadNumber, 9),
        ("m value=-1u", F::BadNumber, 9),
        ("m value=1e5i", F::BadNumber, 9),
        ("m value=1=2", F::BadNumber, 9),
        ("m value=1e29", F::NumberOutOfRange, 9),
        ("m value=1 now", F::BadTime, 11),
        ("m value=1 1.5", F::BadTime, 11),
        ("m value=1 9223372036854775808", F::TimeOutOfRange, 11),
        ("m value=1 99999999999999999999", F::TimeOutOfRange, 11),
        ("m value=1 5 6", F::TrailingText, 13),
        (r#"m s="x",up=t 5"#, F::NoNumericField, 2),
        ("m\tx value=1", F::ControlCharacter, 2),
        ("m,a=\u{7f} value=1", F::ControlCharacter, 5),
        (&long_name, F::NameTooLong, 1),
        (&long_labels, F::LabelsTooLong, 1_025),
    ];
    for (line, fault, column) in table {
        let error = parse(line).expect_err(line);
        assert_eq!((error.fault, error.column), (fault, column), "{line}: {error}");
    }
    assert_eq!(parse(&long_meter).unwrap_err().fault, F::NameTooLong);
    assert_eq!(parse(&long_tenant).unwrap_err().fault, F::NameTooLong);
    let config = LineConfig { precision: Precision::S, ..LineConfig::default() };
    assert_eq!(parse_as(config, "m value=1 9223372037").unwrap_err().fault, F::TimeOutOfRange);
}

#[test]
fn the_longest_names_and_labels_are_taken() {
    let (name, value) = ("n".repeat(128), "v".repeat(1_018));
    let read = one(&format!("{name},tenant={name},a={value},b=1 value=1 9"));
    assert_eq!((read.meter.len(), read.tenant.len(), read.labels.len()), (128, 128, 1_024));
}

#[test]
fn what_is_not_utf8_is_wrong_and_its_excerpt_can_be_logged() {
    let (mut names, mut records) = (Names::default(), Vec::new());
    let mut parser = LineParser::new(LineConfig::default());
    let line = [&b"m,a=\x1b[31m\"\n\xff"[..], &b"\xee".repeat(500)].concat();
    let error = parser.parse_line(&line, NOW_NS, &mut names, &mut records).unwrap_err();
    assert_eq!((error.reason(), error.column), ("not_utf8", 12));
    assert!(error.excerpt.len() <= 80, "{}", error.excerpt.len());
    assert!(error.excerpt.starts_with(r#"m,a=\x1b[31m\"\n\xff"#), "{}", error.excerpt);
    assert!(error.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{error}");
}

#[test]
fn names_of_faults_are_stable_and_each_its_own() {
    let names: std::collections::BTreeSet<_> = LineFault::ALL.map(LineFault::reason).into();
    assert_eq!(names.len(), LineFault::ALL.len());
    for (place, fault) in LineFault::ALL.into_iter().enumerate() {
        assert_eq!(fault.index(), place);
    }
}

#[test]
fn a_wrong_line_does_not_cost_its_neighbours() {
    let block = b"m value=1 1\nwhat is this\n\n# comment\nm value=2,s=\"x\" 2\nm value=3 3";
    let (mut names, mut records, mut wrong) = (Names::default(), Vec::new(), Vec::new());
    let mut parser = LineParser::new(LineConfig::default());
    let mut tell = |error: LineError| wrong.push(error.reason());
    let outcome = parser.parse_block(block, NOW_NS, &mut names, &mut records, &mut tell);
    let expected = BlockOutcome { lines: 6, lines_failed: 1, records: 3, fields_skipped: 1 };
    assert_eq!((outcome, wrong), (expected, vec!["missing_equals"]));
    assert_eq!(records.iter().map(|record| record.time_ns).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_a_line_can_not_say_is_not_written() {
    let good = record("t", "m", "1", 9, "a=1,b=2");
    let table = [
        (UsageRecord { meter: "".into(), ..good.clone() }, "meter"),
        (UsageRecord { meter: "#m".into(), ..good.clone() }, "meter"),
        (UsageRecord { meter: "m\\".into(), ..good.clone() }, "meter"),
        (UsageRecord { meter: "m".repeat(129).into(), ..good.clone() }, "meter"),
        (UsageRecord { tenant: "a\nb".into(), ..good.clone() }, "tenant"),
        (UsageRecord { tenant: "t\\".into(), ..good.clone() }, "tenant"),
        (UsageRecord { labels: "hello".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "b=2,a=1".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "a=1,a=2".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "a=1,".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "a=1 b=2".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "a=1\\".into(), ..good.clone() }, "labels"),
        (UsageRecord { labels: "tenant=x".into(), ..good.clone() }, "labels"),
    ];
    let mut out = String::new();
    for (record, part) in table {
        assert_eq!(write_line(&record, &mut out), Err(LineWriteError { part }), "{record:?}");
    }
    assert_eq!(out, "");
    write_line(&good, &mut out).unwrap();
    assert_eq!(out, "m,tenant=t,a=1,b=2 value=1 9\n");
}
