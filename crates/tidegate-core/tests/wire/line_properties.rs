//! Lines survive every cut and every garbage.

use bytes::Bytes;
use proptest::prelude::*;
use rust_decimal::Decimal;
use tidegate_core::line_protocol::{LineConfig, LineCutter, LineFault, LineParser, write_line};
use tidegate_core::usage::{Names, UsageRecord};

const LINE_BYTES_MAX: usize = 100;

/// Lines of a stream, and the number of those that were too long.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cut {
    lines: Vec<Vec<u8>>,
    too_long: usize,
}

fn record() -> impl Strategy<Value = UsageRecord> {
    let quantity = (any::<i128>(), 32_u32..128, 0_u32..=28)
        .prop_map(|(bits, shift, scale)| Decimal::from_i128_with_scale(bits >> shift, scale));
    let name = r#"[a-zä"][a-z ,=."\\ä-]{0,20}[a-z]"#;
    let label = (r"[a-z]{1,5}(\\[ ,=][a-z])?", r#"[a-z"]{1,5}(\\[ ,=])?"#);
    let labels = prop::collection::btree_map(label.0, label.1, 0..5).prop_map(|labels| {
        let pairs: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(",")
    });
    (name, name, quantity, any::<i64>(), labels)
        .prop_filter("the tenant's tag", |parts| !parts.4.contains("tenant="))
        .prop_map(|(tenant, meter, quantity, time_ns, labels)| UsageRecord {
            tenant: tenant.into(),
            meter: meter.into(),
            quantity,
            time_ns,
            labels: labels.into(),
        })
}

fn cut(stream: &[u8], sizes: &[usize]) -> Cut {
    let (mut cutter, mut cut) = (LineCutter::new(LINE_BYTES_MAX), Cut::default());
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(rest.len().min(*size));
        rest = behind;
        cutter.push(Bytes::copy_from_slice(piece));
        loop {
            match cutter.next() {
                Ok(Some(block)) => {
                    assert!(block.ends_with(b"\n"), "whole lines only");
                    cut.lines.extend(block.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec));
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error.fault, LineFault::LineTooLong);
                    cut.too_long += 1;
                }
            }
        }
        assert!(cutter.held_bytes() <= LINE_BYTES_MAX + 1, "{}", cutter.held_bytes());
    }
    cut.lines.extend(cutter.finish().map(|last| last.to_vec()));
    assert_eq!(cutter.finish(), None);
    cut
}

/// The same by a plain split.
fn expected(stream: &[u8]) -> Cut {
    let mut cut = Cut::default();
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        if line.strip_suffix(b"\n").unwrap_or(line).len() > LINE_BYTES_MAX {
            cut.too_long += 1;
        } else {
            cut.lines.push(line.to_vec());
        }
    }
    cut
}

proptest! {
    #[test]
    fn records_survive_lines(records in prop::collection::vec(record(), 1..30)) {
        let mut text = String::new();
        for record in &records {
            write_line(record, &mut text).unwrap();
        }
        let (mut names, mut read) = (Names::with_capacity(8), Vec::new());
        let wrong = &mut |error| panic!("{error}");
        let mut parser = LineParser::new(LineConfig::default());
        parser.parse_block(text.as_bytes(), 0, &mut names, &mut read, wrong);
        prop_assert_eq!(read, records);
    }

    /// Wherever the network cuts, the lines are the same; one that is too long is told once.
    #[test]
    fn cuts_change_nothing(
        lines in prop::collection::vec((0_usize..240, any::<u8>()), 0..30),
        sizes in prop::collection::vec(1_usize..400, 1..10),
        ends in any::<bool>(),
    ) {
        let plain = |byte| if byte == b'\n' { b'x' } else { byte };
        let line = |(length, byte): (usize, u8)| vec![plain(byte); length];
        let lines: Vec<_> = lines.into_iter().map(line).collect();
        let mut stream = lines.join(&b'\n');
        if ends {
            stream.push(b'\n');
        }
        let expected = expected(&stream);
        prop_assert_eq!(&cut(&stream, &sizes), &expected);
        prop_assert_eq!(&cut(&stream, &[1]), &expected);
        prop_assert_eq!(&cut(&stream, &[stream.len().max(1)]), &expected);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (mut names, mut records) = (Names::default(), Vec::new());
        let mut parser = LineParser::new(LineConfig::default());
        let outcome = parser.parse_block(&bytes, 0, &mut names, &mut records, &mut |_| {});
        prop_assert_eq!(outcome.records, records.len());
    }

    /// Bytes that are all special, so that every branch is met.
    #[test]
    fn any_line_of_special_characters_is_read_without_a_panic(line in r#"[mä1-9e.itu,= \\"\t#\r-]{0,60}"#) {
        let (mut names, mut records) = (Names::default(), Vec::new());
        let mut parser = LineParser::new(LineConfig::default());
        match parser.parse_line(line.as_bytes(), 0, &mut names, &mut records) {
            Ok(outcome) => prop_assert_eq!(outcome.records, records.len()),
            Err(error) => {
                prop_assert!(records.is_empty());
                prop_assert!((1..=line.len() + 1).contains(&error.column), "{}", error);
            }
        }
        // What was read can be stored: within its bounds, and without what a database would choke on.
        for record in records {
            prop_assert!((1..=128).contains(&record.tenant.len()));
            prop_assert!((1..=128).contains(&record.meter.len()));
            let texts = [&record.tenant, &record.meter, &record.labels];
            prop_assert!(texts.iter().all(|text| !text.contains(char::is_control)));
        }
    }
}
