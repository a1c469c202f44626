//! Frames survive every cut and every garbage: what was sent is what is read, and nothing else ever is.

use bytes::Bytes;
use proptest::prelude::*;
use rust_decimal::Decimal;
use tidegate_core::admission::MessageClass;
use tidegate_core::frame::{
    Ack, Batch, BatchBuilder, BatchPushError, FrameError, FrameLimits, Hello, RawFrame,
    Reassembler, Reject, RejectReason, SeqRanges, Welcome,
};
use tidegate_core::sequence::{SEQ_WINDOW, SeqWindow};
use tidegate_core::signal::{BackpressureLevel, BackpressureSignal};
use tidegate_core::usage::{Names, UsageRecord};

fn record() -> impl Strategy<Value = UsageRecord> {
    let quantity = (any::<i128>(), 32_u32..128, 0_u32..=28)
        .prop_map(|(bits, shift, scale)| Decimal::from_i128_with_scale(bits >> shift, scale));
    let name = prop_oneof![3 => "[ab]", 1 => "[a-zäß.,= \\\\]{1,40}"];
    let labels = prop_oneof![2 => Just(String::new()), 1 => "[a-c]=[a-z]{0,100}"];
    (name.clone(), name, quantity, any::<i64>(), labels).prop_map(
        |(tenant, meter, quantity, time_ns, labels)| UsageRecord {
            tenant: tenant.into(),
            meter: meter.into(),
            quantity,
            time_ns,
            labels: labels.into(),
        },
    )
}

fn signal() -> impl Strategy<Value = BackpressureSignal> {
    (0_usize..4, any::<u32>(), any::<bool>(), any::<bool>(), any::<u32>()).prop_map(
        |(level, delay_ms, batch_only, drop_non_critical, ttl_ms)| BackpressureSignal {
            level: BackpressureLevel::ALL[level],
            delay_ms,
            batch_only,
            drop_non_critical,
            ttl_ms,
        },
    )
}

fn hello() -> impl Strategy<Value = Hello> {
    let token = prop::option::of("[!-~]{16,512}");
    let versions = prop::collection::vec(any::<u8>(), 1..=16);
    ("[a-zA-Z0-9._:@/-]{1,128}", versions, "[a-z0-9/. ]{0,100}", token).prop_map(
        |(sender, versions, software, token)| Hello {
            sender: sender.parse().expect("of the safe set"),
            versions,
            software,
            token: token.map(|token| token.parse().expect("visible characters")),
        },
    )
}

fn welcome() -> impl Strategy<Value = Welcome> {
    let seen = prop::collection::vec(1_u64..=SEQ_WINDOW, 0..40).prop_map(|seqs| {
        let mut window = SeqWindow::default();
        for seq in seqs {
            window.record(seq);
        }
        window
    });
    let limits = (2_048_u32..=16 << 20, 1_u32..=65_536, 3_u32..=65_536);
    (limits, 1_u32..=1_024, any::<u64>(), prop::option::of(seen), signal()).prop_map(
        |((frame_bytes_max, batch_records_max, batch_names_max), in_flight, low, seen, signal)| {
            Welcome {
                version: 1,
                limits: FrameLimits { frame_bytes_max, batch_records_max, batch_names_max },
                batches_in_flight_max: in_flight,
                settled_low: low,
                seen,
                signal,
            }
        },
    )
}

fn reject() -> impl Strategy<Value = Reject> {
    (any::<u64>(), 0..RejectReason::ALL.len(), any::<Option<u32>>(), signal(), "[a-zä ]{0,200}")
        .prop_map(|(seq, reason, retry_after_ms, signal, message)| Reject {
            seq,
            reason: RejectReason::ALL[reason],
            retry_after_ms,
            signal,
            message,
        })
}

/// All frames of a stream, read whole.
fn frames_of(stream: &[u8]) -> Result<Vec<RawFrame>, FrameError> {
    frames_cut(stream, &[stream.len()])
}

/// All frames of a stream that comes in pieces of these sizes, again and again.
fn frames_cut(stream: &[u8], sizes: &[usize]) -> Result<Vec<RawFrame>, FrameError> {
    let mut reassembler = Reassembler::new(FrameLimits::default());
    let (mut frames, mut rest) = (Vec::new(), stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(rest.len().min(*size));
        rest = behind;
        reassembler.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = reassembler.next()? {
            frames.push(frame);
        }
        assert!(reassembler.held_bytes() <= FrameLimits::default().frame_bytes_max as usize);
    }
    Ok(frames)
}

fn one(frame: &[u8]) -> RawFrame {
    let mut frames = frames_of(frame).expect("frames");
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

/// As many batches as it takes, numbered from 1.
fn batches(records: &[UsageRecord], limits: FrameLimits) -> Vec<Bytes> {
    let (mut builder, mut batches) = (BatchBuilder::new(limits), Vec::<Bytes>::new());
    for record in records {
        if builder.push(record) == Err(BatchPushError::Full) {
            let settled = batches.len() as u64;
            batches.push(builder.finish(settled + 1, settled, MessageClass::Data));
            builder.push(record).expect("an empty batch takes any record");
        }
    }
    let settled = batches.len() as u64;
    batches.push(builder.finish(settled + 1, settled, MessageClass::Telemetry));
    batches
}

proptest! {
    #[test]
    fn records_survive_frames(
        records in prop::collection::vec(record(), 0..300),
        small in any::<bool>(),
    ) {
        let small_limits =
            FrameLimits { frame_bytes_max: 2_048, batch_records_max: 50, batch_names_max: 10 };
        let limits = if small { small_limits } else { FrameLimits::default() };
        let (mut names, mut read) = (Names::with_capacity(16), Vec::new());
        for (place, frame) in batches(&records, limits).iter().enumerate() {
            prop_assert!(frame.len() <= limits.frame_bytes_max as usize);
            let raw = one(frame);
            prop_assert_eq!(raw.frame_bytes(), frame.len());
            prop_assert_eq!(raw.peek_seq(), Some(place as u64 + 1));
            let batch = Batch::decode(&raw, &limits, &mut names).unwrap();
            prop_assert_eq!((batch.seq, batch.settled), (place as u64 + 1, place as u64));
            read.extend(batch.records);
        }
        prop_assert_eq!(&read, &records);
        // Equal numbers can differ in their zeros; here they are the same digits.
        let digits = |records: &[UsageRecord]| -> Vec<String> {
            records.iter().map(|record| record.quantity.to_string()).collect()
        };
        prop_assert_eq!(digits(&read), digits(&records));
    }

    #[test]
    fn greetings_and_answers_survive_frames(
        hello in hello(),
        welcome in welcome(),
        reject in reject(),
        seqs in prop::collection::vec(1_u64..5_000, 0..200),
        signal in signal(),
    ) {
        prop_assert_eq!(Hello::decode(&one(&hello.encode())), Ok(hello));
        prop_assert_eq!(Welcome::decode(&one(&welcome.encode())), Ok(welcome));
        prop_assert_eq!(Reject::decode(&one(&reject.encode())), Ok(reject));
        let ack = Ack { seqs: seqs.into_iter().collect(), signal };
        prop_assert_eq!(Ack::decode(&one(&ack.encode())), Ok(ack));
    }

    #[test]
    fn an_ack_names_each_number_once(mut seqs in prop::collection::vec(1_u64..4_000, 0..3_000)) {
        let mut out = Vec::new();
        let signal = BackpressureSignal {
            level: BackpressureLevel::None,
            delay_ms: 0,
            batch_only: false,
            drop_non_critical: false,
            ttl_ms: 0,
        };
        let mut expected = seqs.clone();
        expected.sort_unstable();
        let count = Ack::encode_all(&mut seqs, signal, &mut out);
        let frames = frames_of(&out).unwrap();
        prop_assert_eq!(frames.len(), count);
        let read: Vec<SeqRanges> =
            frames.iter().map(|frame| Ack::decode(frame).unwrap().seqs).collect();
        let mut named: Vec<u64> = read.iter().flat_map(SeqRanges::iter).collect();
        for seq in 1..4_000 {
            let has = read.iter().any(|ranges| ranges.contains(seq));
            prop_assert_eq!(has, expected.binary_search(&seq).is_ok());
        }
        expected.dedup();
        named.dedup();
        prop_assert_eq!(named, expected);
    }

    /// Wherever the network cuts, the frames are the same.
    #[test]
    fn cuts_change_nothing(
        records in prop::collection::vec(record(), 0..200),
        hello in hello(),
        reject in reject(),
        sizes in prop::collection::vec(1_usize..3_000, 1..20),
    ) {
        let limits = FrameLimits { frame_bytes_max: 2_048, ..FrameLimits::default() };
        let mut stream = hello.encode().to_vec();
        batches(&records, limits).iter().for_each(|frame| stream.extend_from_slice(frame));
        reject.encode_into(&mut stream);
        let whole = frames_of(&stream).unwrap();
        prop_assert_eq!(whole.len(), 2 + batches(&records, limits).len());
        prop_assert_eq!(&frames_cut(&stream, &sizes).unwrap(), &whole);
        prop_assert_eq!(&frames_cut(&stream, &[1]).unwrap(), &whole);
    }

    /// Garbage never panics, and never makes it hold more than one frame and the chunk.
    #[test]
    fn garbage_is_an_error_and_holds_nothing(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..20),
        plausible in any::<bool>(),
    ) {
        let limits = FrameLimits::default();
        let (mut reassembler, mut names) = (Reassembler::new(limits), Names::default());
        if plausible {
            reassembler.push(Bytes::from_static(&[0, 0, 2, 0, 1, 2, 2, 0x84]));
        }
        let mut broken = None;
        for chunk in chunks {
            let bytes = chunk.len();
            reassembler.push(chunk.into());
            // Each call reads seven bytes at the least, so it comes to an end.
            for _ in 0..=bytes + 8 {
                match reassembler.next() {
                    Ok(Some(frame)) => decode_all(&frame, &limits, &mut names),
                    Ok(None) => break,
                    Err(error) if error.breaks_framing() => {
                        prop_assert!(broken.is_none() || broken == Some(error.clone()));
                        prop_assert_eq!(reassembler.held_bytes(), 0);
                        broken = Some(error);
                        break;
                    }
                    Err(_) => {}
                }
            }
            prop_assert!(reassembler.held_bytes() <= limits.frame_bytes_max as usize + bytes);
        }
    }

    /// One byte of a good frame is changed: it is read, or refused, and nothing panics.
    #[test]
    fn a_changed_byte_is_survived(
        records in prop::collection::vec(record(), 1..20),
        welcome in welcome(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let limits = FrameLimits::default();
        for frame in [batches(&records, limits).remove(0), welcome.encode()] {
            let mut frame = frame.to_vec();
            let at = at.index(frame.len());
            frame[at] = byte;
            for frame in frames_of(&frame).into_iter().flatten() {
                decode_all(&frame, &limits, &mut Names::default());
            }
        }
    }
}

/// Reads a frame as everything that it could be.
fn decode_all(frame: &RawFrame, limits: &FrameLimits, names: &mut Names) {
    let _ = frame.peek_seq();
    let _ = Hello::decode(frame);
    let _ = Welcome::decode(frame);
    let _ = Batch::decode(frame, limits, names);
    let _ = Ack::decode(frame);
    let _ = Reject::decode(frame);
}
