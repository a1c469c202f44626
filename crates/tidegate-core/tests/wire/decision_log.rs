//! The decision log's format: what is written is read back, whatever it holds.

use proptest::prelude::*;
use tidegate_core::admission::{MessagePriority, PriorityLimits, Sharing};
use tidegate_core::decision_log::{
    DecisionRecord, FORMAT, Footer, Header, InFlight, LINE_BYTES_MAX, Line, VERSION,
};

fn in_flight() -> impl Strategy<Value = InFlight> {
    any::<[u64; 4]>().prop_map(|[critical, high, normal, low]| InFlight {
        critical,
        high,
        normal,
        low,
    })
}

fn header() -> impl Strategy<Value = Header> {
    let limits =
        any::<[u16; 5]>().prop_map(|[high, normal, low, global_limit, critical_reserve]| {
            PriorityLimits { high, normal, low, global_limit, critical_reserve }
        });
    let sharing = prop_oneof![Just(Sharing::Strict), Just(Sharing::Borrow)];
    (any::<String>(), any::<u64>(), limits, sharing, any::<bool>(), in_flight()).prop_map(
        |(gateway, started_unix_ms, limits, sharing, dry_run, in_flight)| Header {
            gateway,
            started_unix_ms,
            limits,
            sharing,
            dry_run,
            in_flight,
        },
    )
}

fn decision() -> impl Strategy<Value = Line<'static>> {
    let priority = prop::sample::select(MessagePriority::ALL.to_vec());
    let verdict = prop_oneof![
        any::<u64>().prop_map(|took| (DecisionRecord::ADMITTED.to_owned(), Some(took))),
        ("[a-z_]{1,20}x", prop::option::of(any::<u64>())),
    ];
    let client = prop::option::of(".{0,64}");
    (any::<i64>(), priority, client, verdict).prop_map(|(at_us, priority, client, verdict)| {
        let (decision, took_us) = verdict;
        let (client, decision) = (client.map(Into::into), decision.into());
        Line::Decision(DecisionRecord { at_us, priority, client, decision, took_us })
    })
}

fn line() -> impl Strategy<Value = Line<'static>> {
    let end = ("[a-z]{1,9}", any::<[u64; 3]>(), in_flight()).prop_map(
        |(end, [decisions, lost, lasted_us], in_flight)| {
            Line::End(Footer { end: end.into(), decisions, lost, lasted_us, in_flight })
        },
    );
    prop_oneof![8 => decision(), 1 => any::<u64>().prop_map(Line::Lost), 1 => end]
}

proptest! {
    #[test]
    fn every_line_survives_its_encoding(line in line()) {
        let mut bytes = Vec::new();
        line.encode(&mut bytes);
        prop_assert!(bytes.ends_with(b"\n") && bytes.len() <= LINE_BYTES_MAX);
        prop_assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        prop_assert_eq!(Line::is_decision(&bytes), matches!(line, Line::Decision(_)));
        prop_assert_eq!(Line::decode(&bytes).unwrap(), line);
    }

    #[test]
    fn every_header_survives_its_encoding(header in header()) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        prop_assert_eq!(Header::decode(&bytes).unwrap(), header);
    }
}

/// The bytes of version 1: a change here needs a new version.
#[test]
fn the_bytes_are_those_of_version_1() {
    assert_eq!((FORMAT, VERSION), ("tidegate-decisions", 1));
    let in_flight = InFlight { critical: 1, high: 2, normal: 3, low: 4 };
    let mut bytes = Vec::new();
    let limits =
        PriorityLimits { high: 4, normal: 3, low: 2, global_limit: 9, critical_reserve: 1 };
    let (gateway, sharing) = ("0.1.0".to_owned(), Sharing::Borrow);
    Header { gateway, started_unix_ms: 7, limits, sharing, dry_run: false, in_flight }
        .encode(&mut bytes);
    let record = DecisionRecord {
        at_us: -5,
        priority: MessagePriority::High,
        client: Some("a\"b".into()),
        decision: "all_busy".into(),
        took_us: Some(40),
    };
    Line::Decision(record.clone()).encode(&mut bytes);
    Line::Decision(DecisionRecord { client: None, took_us: None, ..record }).encode(&mut bytes);
    Line::Lost(3).encode(&mut bytes);
    let end = "time".into();
    Line::End(Footer { end, decisions: 2, lost: 3, lasted_us: 99, in_flight }).encode(&mut bytes);
    let expected = r#"{"format":"tidegate-decisions","version":1,"gateway":"0.1.0","started_unix_ms":7,"limits":{"global":9,"high":4,"normal":3,"low":2,"critical_reserve":1},"sharing":"borrow","dry_run":false,"in_flight":{"critical":1,"high":2,"normal":3,"low":4}}
{"at_us":-5,"priority":"high","client":"a\"b","decision":"all_busy","took_us":40}
{"at_us":-5,"priority":"high","decision":"all_busy"}
{"lost":3}
{"end":"time","decisions":2,"lost":3,"lasted_us":99,"in_flight":{"critical":1,"high":2,"normal":3,"low":4}}
"#;
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn what_is_no_line_of_the_format_is_refused_with_the_reason() {
    for (line, says) in [
        ("{", "EOF"),
        (r#"{"at_us":1}"#, "missing field"),
        (r#"{"at_us":1,"priority":"lowest","decision":"admitted","took_us":1}"#, "lowest"),
        (r#"{"at_us":1,"priority":"low","decision":"admitted"}"#, "took_us is missing"),
    ] {
        let error = Line::decode(line.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
    let header = br#"{"format":"tidegate-decisions","version":2,"limits":{"global":9,"high":4,"normal":3,"low":2,"critical_reserve":1},"sharing":"strict"}"#;
    let error = Header::decode(header).unwrap_err().to_string();
    assert!(error.contains("version 2 of the format is unknown"), "{error}");
}
