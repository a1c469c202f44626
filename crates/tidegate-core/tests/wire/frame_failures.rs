//! Every way in which a frame can be wrong, each with what it is called and whether the connection lives on.

use bytes::Bytes;
use tidegate_core::admission::MessageClass;
use tidegate_core::frame::{
    Ack, Batch, BatchBuilder, BatchPushError, FrameError, FrameKind, FrameLimits, Hello, NameFault,
    RawFrame, Reassembler, RecordFault, Reject, RejectReason, Welcome,
};
use tidegate_core::sequence::SeqWindow;
use tidegate_core::signal::{BackpressureLevel, BackpressureSignal};
use tidegate_core::usage::{Names, QuantityError, UsageRecord};

const NO_SIGNAL: BackpressureSignal = BackpressureSignal {
    level: BackpressureLevel::None,
    delay_ms: 0,
    batch_only: false,
    drop_non_critical: false,
    ttl_ms: 5_000,
};

fn record(labels: &str) -> UsageRecord {
    UsageRecord {
        tenant: "acme".into(),
        meter: "tokens".into(),
        quantity: 7.into(),
        time_ns: 1,
        labels: labels.into(),
    }
}

fn batch(seq: u64) -> Bytes {
    let mut builder = BatchBuilder::new(FrameLimits::default());
    builder.push(&record("")).unwrap();
    builder.finish(seq, 0, MessageClass::Data)
}

/// A frame by its parts, whatever they are.
fn frame(kind: u8, class: u8, body: &[u8]) -> Bytes {
    let mut frame = (body.len() as u32 + 3).to_be_bytes().to_vec();
    frame.extend_from_slice(&[1, kind, class]);
    frame.extend_from_slice(body);
    frame.into()
}

fn pushed(bytes: &[u8]) -> Reassembler {
    let mut reassembler = Reassembler::new(FrameLimits::default());
    reassembler.push(Bytes::copy_from_slice(bytes));
    reassembler
}

fn decoded(body: &[u8]) -> Result<Batch, FrameError> {
    let body = Bytes::copy_from_slice(body);
    let raw = RawFrame { kind: FrameKind::Batch, class: MessageClass::Data, body };
    Batch::decode(&raw, &FrameLimits::default(), &mut Names::default())
}

/// A batch of one record whose CBOR is this, with the names `t` and `m`.
fn decoded_record(record: &[u8]) -> Result<UsageRecord, FrameError> {
    let mut body = b"\x84\x01\x00\x82\x61t\x61m\x81".to_vec();
    body.extend_from_slice(record);
    decoded(&body).map(|mut batch| batch.records.remove(0))
}

fn fault(record: &[u8]) -> RecordFault {
    match decoded_record(record) {
        Err(FrameError::BadRecord { index: 0, fault }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_length_or_version_breaks_the_framing_for_good() {
    let table: [(&[u8], &str); 6] = [
        (&[0, 0, 0, 0, 1], "frame_too_short"),
        (&[0, 0, 0, 2, 1, 2], "frame_too_short"),
        (&[0, 0, 0xff, 0xfd], "frame_too_long"),
        (b"GET / HTTP/1.1\r\n", "frame_too_long"),
        (&[0, 0, 0, 9, 2], "unknown_version"),
        (&[0, 0, 0, 9, 0], "unknown_version"),
    ];
    for (bytes, reason) in table {
        let mut reassembler = pushed(bytes);
        let error = reassembler.next().unwrap_err();
        assert_eq!((error.reason(), error.breaks_framing()), (reason, true), "{error}");
        reassembler.push(batch(1));
        assert_eq!(reassembler.next(), Err(error), "and nothing is read behind it");
        assert_eq!(reassembler.held_bytes(), 0);
    }
}

#[test]
fn the_longest_frame_is_taken_and_one_byte_more_is_not() {
    let limits = FrameLimits::default();
    let longest = frame(2, 2, &vec![0; limits.body_bytes_max()]);
    assert_eq!(longest.len(), 65_536);
    let raw = pushed(&longest).next().unwrap().expect("a frame");
    assert_eq!(raw.frame_bytes(), 65_536);
    let longer = frame(2, 2, &vec![0; limits.body_bytes_max() + 1]);
    assert_eq!(pushed(&longer).next().unwrap_err().reason(), "frame_too_long");
}

#[test]
fn a_wrong_kind_or_class_is_passed_over_and_the_next_frame_is_read() {
    let mut stream = frame(99, 2, b"what is this").to_vec();
    stream.extend_from_slice(&frame(2, 4, b"\x84\x05"));
    stream.extend_from_slice(&frame(2, 0, b"\x84\x18\x2a"));
    stream.extend_from_slice(&batch(7));
    let mut reassembler = pushed(&stream);
    assert_eq!(reassembler.next(), Err(FrameError::UnknownKind { given: 99 }));
    assert_eq!(reassembler.next(), Err(FrameError::UnknownClass { given: 4 }));
    let (kind, class) = (FrameKind::Batch, MessageClass::Control);
    let claimed = FrameError::ClassTooHigh { kind, class, seq: Some(42) };
    assert_eq!(reassembler.next(), Err(claimed), "records can't call themselves control");
    assert_eq!(reassembler.next().unwrap().and_then(|raw| raw.peek_seq()), Some(7));
    assert_eq!(reassembler.next(), Ok(None));
}

#[test]
fn one_large_read_of_many_frames_is_read_without_a_copy() {
    let one = batch(1);
    let count = 3 * 65_536 / one.len();
    let read: Bytes = one.repeat(count).into();
    assert!(read.len() > 2 * FrameLimits::default().frame_bytes_max as usize);
    let mut reassembler = Reassembler::new(FrameLimits::default());
    reassembler.push(read.clone());
    for place in 0..count {
        let frame = reassembler.next().unwrap().expect("one of many");
        let expected = &read[place * one.len() + 7..(place + 1) * one.len()];
        assert!(std::ptr::eq(&frame.body[..], expected), "the read's own memory");
    }
    assert_eq!((reassembler.next(), reassembler.held_bytes()), (Ok(None), 0));
}

#[test]
fn a_length_alone_earns_no_memory() {
    let mut reassembler = pushed(&[0, 0, 0xff, 0xfc, 1, 2, 2]);
    assert_eq!(reassembler.next(), Ok(None));
    assert!(reassembler.is_within_frame());
    assert!(reassembler.held_bytes() <= 1_024, "{}", reassembler.held_bytes());
}

#[test]
fn pushing_before_all_was_taken_loses_nothing() {
    let mut reassembler = Reassembler::new(FrameLimits::default());
    let stream: Bytes = [batch(1), batch(2), batch(3)].concat().into();
    let cut = stream.len() / 2;
    reassembler.push(stream.slice(..cut));
    reassembler.push(stream.slice(cut..));
    reassembler.push(Bytes::new());
    let read = std::iter::from_fn(|| reassembler.next().unwrap());
    assert_eq!(read.map(|frame| frame.peek_seq()).collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
}

#[test]
fn a_body_that_is_not_a_batch_is_refused_with_its_place() {
    let table: [(&[u8], &str); 15] = [
        (b"", "bad_body"),
        (b"\xff\xff\xff", "bad_body"),
        (b"\x83\x01\x00\x80", "bad_body"),
        (b"\x9f\x01\x00\x80\x80\xff", "bad_body"),
        (b"\x84\x20\x00\x80\x80", "bad_body"),
        (b"\x84\x00\x00\x80\x80", "bad_seq"),
        (b"\x84\x05\x05\x80\x80", "bad_seq"),
        (b"\x84\x01\x00\x80\x80\x00", "trailing_bytes"),
        (b"\x84\x01\x00\x81\x01\x80", "bad_body"),
        (b"\x84\x01\x00\x81\x41a\x80", "bad_body"),
        (b"\x84\x01\x00\x81\x62\xff\xff\x80", "bad_body"),
        (b"\x84\x01\x00\x81\x61\x00\x80", "bad_name"),
        (b"\x84\x01\x00\x80\xa0", "bad_body"),
        // A length that the frame can't hold.
        (b"\x84\x01\x00\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "bad_body"),
        (b"\x84\x01\x00\x80\x9b\x7f\xff\xff\xff\xff\xff\xff\xff\x00", "bad_body"),
    ];
    for (body, reason) in table {
        let error = decoded(body).expect_err(reason);
        assert_eq!((error.reason(), error.breaks_framing()), (reason, false), "{error}");
    }
    assert_eq!(decoded(b"\x84\x01\x00\x80\x80").unwrap().records, [], "only settles");
    let message = decoded(b"\x84\x01\x00\x81\x01\x80").unwrap_err().to_string();
    assert_eq!(message, "byte 4 of the body: expected a name, as text");
}

#[test]
fn however_deep_cbor_is_nested_nothing_follows() {
    for nested in [b"\x81".repeat(60_000), b"\xc4".repeat(60_000), b"\xa1".repeat(60_000)] {
        assert_eq!(decoded(&nested).unwrap_err().reason(), "bad_body");
        let mut record = b"\x84\x00\x01".to_vec();
        record.extend_from_slice(&nested);
        assert_eq!(decoded_record(&record).unwrap_err().reason(), "bad_record");
    }
}

#[test]
fn quantities_come_in_three_forms() {
    let table: [(&[u8], &str); 12] = [
        (b"\x00", "0"),
        (b"\x18\x64", "100"),
        (b"\x20", "-1"),
        (b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
        (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", "-18446744073709551616"),
        (b"\x3b\x7f\xff\xff\xff\xff\xff\xff\xff", "-9223372036854775808"),
        (b"\xc4\x82\x20\x18\x7d", "12.5"),
        (b"\xc4\x82\x21\x38\x63", "-1.00"),
        (b"\xc4\x82\x03\x05", "5000"),
        (b"\xc4\x82\x38\x1f\x19\x01\x00", "0.0000000000000000000000000000"),
        (b"\x6412.5", "12.5"),
        (b"\x65-3e-2", "-0.03"),
    ];
    for (quantity, expected) in table {
        let record = [b"\x84\x00\x01", quantity, b"\x07"].concat();
        let read = decoded_record(&record).unwrap_or_else(|error| panic!("{expected}: {error}"));
        assert_eq!(read.quantity.to_string(), expected);
        assert_eq!((&*read.tenant, &*read.meter, read.time_ns), ("t", "m", 7));
    }
}

#[test]
fn a_record_that_can_not_be_one_says_why() {
    use RecordFault::{Float, NoSuchName, Quantity, Shape, Time};
    let not_a_number = Quantity(QuantityError::NotANumber);
    let table: [(&[u8], RecordFault); 19] = [
        (b"\x00", Shape),
        (b"\x83\x00\x01\x05", Shape),
        (b"\x86\x00\x01\x05\x07\x00\x00", Shape),
        (b"\x84\x20\x01\x05\x07", Shape),
        (b"\x84\x02\x01\x05\x07", NoSuchName),
        (b"\x84\x00\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x05\x07", NoSuchName),
        (b"\x85\x00\x01\x05\x07\x02", NoSuchName),
        (b"\x84\x00\x01\xf9\x3c\x00\x07", Float),
        (b"\x84\x00\x01\xfa\x3f\x80\x00\x00\x07", Float),
        (b"\x84\x00\x01\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00\x07", Float),
        (b"\x84\x00\x01\xf6\x07", not_a_number),
        (b"\x84\x00\x01\x63NaN\x07", not_a_number),
        (b"\x84\x00\x01\xc2\x41\x05\x07", not_a_number),
        (b"\x84\x00\x01\xc4\x81\x05\x07", not_a_number),
        (b"\x84\x00\x01\xc4\x82\x18\x1d\x01\x07", Quantity(QuantityError::OutOfRange)),
        (b"\x84\x00\x01\xc4\x82\x3b\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07", not_a_number),
        (b"\x84\x00\x01\x641e99\x07", Quantity(QuantityError::OutOfRange)),
        (b"\x84\x00\x01\x05\x1b\x80\x00\x00\x00\x00\x00\x00\x00", Time),
        (b"\x84\x00\x01\x05\xf6", Time),
    ];
    for (record, expected) in table {
        assert_eq!(fault(record), expected, "{record:x?}");
    }
    let float = decoded_record(b"\x84\x00\x01\xf9\x3c\x00\x07").unwrap_err().to_string();
    assert!(float.starts_with("record 0: its quantity is a float: expected an integer"), "{float}");
}

#[test]
fn a_bad_name_is_refused_where_it_is_used_and_before_it_is_sent() {
    let long = "n".repeat(129);
    let mut body = b"\x84\x01\x00\x83\x60\x61m\x78\x81".to_vec();
    body.extend_from_slice(long.as_bytes());
    let with_tenant = |place: u8| {
        let mut body = body.clone();
        body.extend_from_slice(&[0x81, 0x84, place, 1, 5, 7]);
        decoded(&body).unwrap_err()
    };
    let refused = |fault| FrameError::BadRecord { index: 0, fault: RecordFault::Tenant(fault) };
    assert_eq!(with_tenant(0), refused(NameFault::Empty));
    assert_eq!(with_tenant(2), refused(NameFault::TooLong));

    let mut builder = BatchBuilder::new(FrameLimits::default());
    let mut push = |record: UsageRecord| builder.push(&record).unwrap_err();
    let tenant = |tenant: &str| UsageRecord { tenant: tenant.into(), ..record("") };
    let meter = UsageRecord { meter: "a\nb".into(), ..record("") };
    assert_eq!(push(tenant("")), BatchPushError::Refused(RecordFault::Tenant(NameFault::Empty)));
    assert_eq!(
        push(tenant(&long)),
        BatchPushError::Refused(RecordFault::Tenant(NameFault::TooLong))
    );
    let control = NameFault::ControlCharacter;
    assert_eq!(push(meter), BatchPushError::Refused(RecordFault::Meter(control)));
    let labels = record(&"l".repeat(1_025));
    assert_eq!(push(labels), BatchPushError::Refused(RecordFault::Labels(NameFault::TooLong)));
    assert!(builder.is_empty(), "and leaves nothing behind");
    let only_settles = builder.finish(1, 0, MessageClass::Data);
    assert_eq!(only_settles.len(), 7 + 5, "not even a name");
}

#[test]
fn a_name_that_is_in_the_table_as_labels_is_still_too_long_for_a_tenant() {
    let long = "n".repeat(200);
    let mut builder = BatchBuilder::new(FrameLimits::default());
    builder.push(&record(&long)).unwrap();
    let tenant = UsageRecord { tenant: long.as_str().into(), ..record("") };
    let too_long = RecordFault::Tenant(NameFault::TooLong);
    assert_eq!(builder.push(&tenant), Err(BatchPushError::Refused(too_long)));
}

#[test]
fn too_many_records_or_names_are_told_apart_from_garbage() {
    let records = [&b"\x84\x01\x00\x80\x99\x10\x01"[..], &b"\x80".repeat(4_097)].concat();
    let error = decoded(&records).unwrap_err();
    assert_eq!(error, FrameError::TooManyRecords { given: 4_097, max: 4_096 });
    assert_eq!(error.reject_reason(), RejectReason::TooLarge);
    let names = [&b"\x84\x01\x00\x99\x10\x01"[..], &b"\x60".repeat(4_097)].concat();
    assert_eq!(decoded(&names), Err(FrameError::TooManyNames { given: 4_097, max: 4_096 }));
}

#[test]
fn a_full_builder_takes_the_record_in_its_next_batch() {
    let limits = FrameLimits { batch_records_max: 2, ..FrameLimits::default() };
    let mut builder = BatchBuilder::new(limits);
    builder.push(&record("a=1")).unwrap();
    builder.push(&record("a=2")).unwrap();
    assert_eq!(builder.push(&record("a=3")), Err(BatchPushError::Full));
    assert_eq!(builder.record_count(), 2);
    assert!(!builder.finish(1, 0, MessageClass::Data).is_empty());
    builder.push(&record("a=3")).unwrap();
    let frame = builder.finish(2, 0, MessageClass::Data);
    let raw = pushed(&frame).next().unwrap().unwrap();
    let read = Batch::decode(&raw, &limits, &mut Names::default()).unwrap();
    assert_eq!(read.records, [record("a=3")]);
}

#[test]
fn the_largest_record_fits_in_the_smallest_frame() {
    let limits = FrameLimits { frame_bytes_max: 2_048, batch_records_max: 1, batch_names_max: 3 };
    assert_eq!(limits.validate(), Ok(()));
    let largest = UsageRecord {
        tenant: "t".repeat(128).into(),
        meter: "m".repeat(128).into(),
        quantity: "-0.1234567890123456789012345678".parse().unwrap(),
        time_ns: i64::MIN,
        labels: "l".repeat(1_024).into(),
    };
    BatchBuilder::new(limits).push(&largest).unwrap();
}

#[test]
fn hellos_answers_and_rejects_that_are_none_are_refused() {
    let raw = |kind, body: &[u8]| RawFrame {
        kind,
        class: MessageClass::Control,
        body: Bytes::copy_from_slice(body),
    };
    let hello = |body: &[u8]| Hello::decode(&raw(FrameKind::Hello, body)).unwrap_err().reason();
    assert_eq!(hello(b"\x84\x00\x63a b\x81\x01\x60"), "bad_sender");
    assert_eq!(hello(b"\x84\x01\x61a\x81\x01\x60"), "bad_body", "a receiver's");
    assert_eq!(hello(b"\x84\x00\x61a\x80\x60"), "bad_body", "no version");
    assert_eq!(hello(b"\x84\x00\x61a\x81\x19\x01\x00\x60"), "bad_body", "not a byte");
    assert_eq!(hello(b"\x84\x00\x61a\x81\x01\x61\x0a"), "bad_body", "a newline");
    assert_eq!(hello(b"\x84\x00\x61a\x81\x01\x60\x00"), "trailing_bytes");

    let ack = |body: &[u8]| Ack::decode(&raw(FrameKind::Ack, body)).unwrap_err().reason();
    let signal = b"\x85\x00\x00\xf4\xf4\x00";
    for ranges in [
        &b"\x82\x81\x82\x00\x01"[..],
        b"\x82\x81\x82\x05\x04",
        b"\x82\x82\x82\x01\x05\x82\x05\x06",
        b"\x82\x81\x82\x01\x19\x04\x01",
        b"\x82\x81\x82\x01\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        assert_eq!(ack(&[ranges, signal].concat()), "bad_body", "{ranges:x?}");
    }
    assert_eq!(ack(b"\x82\x80\x85\x04\x00\xf4\xf4\x00"), "bad_body", "no such level");

    let wrong = Reject::decode(&raw(FrameKind::Ack, b"\x85")).unwrap_err();
    assert_eq!(wrong.to_string(), "a frame of kind ack: expected reject");
}

#[test]
fn an_unknown_reason_is_survived_and_a_long_message_is_cut() {
    let mut reject = Reject {
        seq: 3,
        reason: RejectReason::Overloaded,
        retry_after_ms: Some(250),
        signal: NO_SIGNAL,
        message: "ä".repeat(1_000),
    };
    let read = Reject::decode(&pushed(&reject.encode()).next().unwrap().unwrap()).unwrap();
    assert_eq!((read.message.len(), read.is_final()), (512, false));
    reject.message = String::new();
    let mut bytes = reject.encode().to_vec();
    let at = bytes.windows(10).position(|name| name == b"overloaded").unwrap();
    bytes[at] = b'x';
    let read = Reject::decode(&pushed(&bytes).next().unwrap().unwrap()).unwrap();
    assert_eq!((read.reason, read.retry_after_ms), (RejectReason::Other, Some(250)));
}

#[test]
fn what_is_told_of_a_wrong_frame_is_final_and_says_what_is_wrong() {
    let error = decoded_record(b"\x84\x00\x09\x05\x07").unwrap_err();
    let reject = Reject::of_error(Some(1), &error, NO_SIGNAL);
    assert!(reject.is_final());
    assert_eq!(reject.reason, RejectReason::Malformed);
    let expected = "bad_record: record 0: index beyond the end of the names";
    assert_eq!(reject.message, expected);
}

#[test]
fn names_of_reasons_are_stable_and_survive() {
    for reason in RejectReason::ALL {
        assert_eq!(RejectReason::from_name(reason.name()), reason);
        assert_eq!(RejectReason::ALL[reason.index()], reason);
    }
    assert_eq!(RejectReason::from_name("what"), RejectReason::Other);
}

#[test]
fn a_sender_that_comes_back_knows_what_to_send() {
    let mut seen = SeqWindow::default();
    seen.settle(10);
    seen.record(12);
    let limits = FrameLimits::default();
    let mut welcome = Welcome {
        version: 1,
        limits,
        batches_in_flight_max: 64,
        settled_low: 10,
        seen: Some(seen),
        signal: NO_SIGNAL,
    };
    let missing = |welcome: &Welcome| (9..=14).filter(|seq| !welcome.has(*seq)).collect::<Vec<_>>();
    assert_eq!(missing(&welcome), [11, 13, 14]);
    welcome.seen = None;
    assert_eq!(
        missing(&welcome),
        [11, 12, 13, 14],
        "more than needed, and counted once all the same"
    );
}
