//! Frames that are none: refused by reason, told to whoever sent them, and nobody else notices.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch, batch_of, hello, record};
use bytes::{BufMut, BytesMut};
use tidegate::MessageClass;
use tidegate::frame::{PROTOCOL_VERSION, RejectReason};

const HELLO: u8 = 1;
const BATCH: u8 = 2;
const ACK: u8 = 3;
const DATA: u8 = 2;

/// A frame with any header and any body.
fn raw(version: u8, kind: u8, class: u8, body: &[u8]) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_u32(body.len() as u32 + 3);
    frame.put_slice(&[version, kind, class]);
    frame.put_slice(body);
    frame
}

fn frame(kind: u8, class: u8, body: &[u8]) -> BytesMut {
    raw(PROTOCOL_VERSION, kind, class, body)
}

/// A batch with something behind its end, counted in its length.
fn with_trailing_bytes() -> BytesMut {
    let good = batch("a", (7, 0), 2);
    frame(BATCH, DATA, &[&good[7..], b"more"].concat())
}

#[tokio::test]
async fn a_frame_that_is_wrong_within_its_length_is_refused_and_the_connection_lives_on() {
    let ingest = TestIngest::start();
    let mut other = Peer::named(ingest.frames, "other").await;
    let mut peer = Peer::named(ingest.frames, "a").await;
    let good = batch("a", (7, 0), 2);
    let wrong: [(&str, BytesMut, RejectReason, u64); 8] = [
        ("unknown_kind", frame(99, DATA, b""), RejectReason::UnknownKind, 0),
        ("unknown_class", frame(BATCH, 9, &good[7..]), RejectReason::ClassRefused, 0),
        ("class_too_high", frame(BATCH, 0, &good[7..]), RejectReason::ClassRefused, 7),
        ("bad_body", frame(BATCH, DATA, b"\xff\x00garbage"), RejectReason::Malformed, 0),
        ("bad_record", frame(BATCH, DATA, &good[7..good.len() - 3]), RejectReason::Malformed, 7),
        ("trailing_bytes", with_trailing_bytes(), RejectReason::Malformed, 7),
        ("wrong_kind", frame(ACK, 0, b"\x80"), RejectReason::UnknownKind, 0),
        ("bad_body", frame(HELLO, 0, b"\x80"), RejectReason::Malformed, 0),
    ];
    for (seq, (reason, bytes, told, of)) in (1..).zip(wrong) {
        let before = ingest.rejected(reason);
        peer.send(&bytes).await;
        let reject = peer.reject().await;
        assert_eq!((reject.reason, reject.seq), (told, of), "{reason}: {reject:?}");
        assert!(reject.is_final() && !reject.message.is_empty(), "{reject:?}");
        assert_eq!(ingest.rejected(reason), before + 1, "{reason}");
        peer.send(&batch("a", (seq, 0), 2)).await;
        peer.acked(seq).await;
    }
    other.send(&batch("other", (1, 0), 2)).await;
    other.acked(1).await;
    assert_eq!((ingest.stored("a").await, ingest.stored("other").await), (16, 2));
}

#[tokio::test]
async fn a_frame_whose_end_is_not_known_ends_its_connection_and_no_other() {
    let ingest = TestIngest::start();
    let mut other = Peer::named(ingest.frames, "other").await;
    let wrong = [
        (
            "frame_too_long",
            [&[0, 16, 0, 0][..], &[1, BATCH, DATA]].concat(),
            RejectReason::BadFraming,
        ),
        ("frame_too_short", vec![0, 0, 0, 2, 1, BATCH], RejectReason::BadFraming),
        ("unknown_version", raw(9, BATCH, DATA, b"\x80").to_vec(), RejectReason::UnknownVersion),
        ("frame_too_long", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), RejectReason::BadFraming),
    ];
    for (seq, (reason, bytes, told)) in (1..).zip(wrong) {
        let mut peer = Peer::named(ingest.frames, "a").await;
        let before = ingest.rejected(reason);
        // What came before it counts, what comes after it does not.
        let (good, late) = (batch("a", (seq, 0), 2), batch("late", (seq + 100, 0), 2));
        peer.send(&[&good[..], &bytes, &late].concat()).await;
        let (mut acked, mut rejected) = (false, None);
        while let Some(said) = peer.next().await {
            match said {
                crate::support::Said::Ack(ack) => acked |= ack.seqs.contains(seq),
                crate::support::Said::Reject(reject) => rejected = Some(reject.reason),
                crate::support::Said::Welcome(_) => panic!("welcomed twice"),
            }
        }
        assert_eq!(rejected, Some(told), "{reason}");
        assert_eq!(ingest.rejected(reason), before + 1, "{reason}");
        if !acked {
            // It was cut before its ack could be written; a sender would ask again.
            let mut again = Peer::connect(ingest.frames).await;
            again.send(&hello("a")).await;
            assert!(again.welcome().await.has(seq), "{reason}");
        }
        eventually("its place is free", || ingest.connections() == 1).await;
        other.send(&batch("other", (seq, 0), 2)).await;
        other.acked(seq).await;
    }
    assert_eq!((ingest.stored("a").await, ingest.stored("late").await), (8, 0));
    eventually("nothing is held", || ingest.stats().pipeline.memory_bytes == 0).await;
}

#[tokio::test]
async fn a_batch_before_the_hello_is_refused_and_may_come_again_after_it() {
    let ingest = TestIngest::start();
    let mut peer = Peer::connect(ingest.frames).await;
    peer.send(&batch("a", (3, 0), 2)).await;
    let reject = peer.reject().await;
    assert_eq!((reject.reason, reject.seq), (RejectReason::HelloExpected, 3));
    peer.send(&hello("a")).await;
    peer.welcome().await;
    peer.send(&batch("a", (3, 0), 2)).await;
    peer.acked(3).await;
    assert_eq!(ingest.rejected("hello_expected"), 1);
}

#[tokio::test]
async fn a_connection_keeps_the_name_it_gave_first() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "a").await;
    for name in ["b", "a"] {
        peer.send(&hello(name)).await;
        let reject = peer.reject().await;
        assert_eq!((reject.reason, reject.seq), (RejectReason::SenderTaken, 0));
    }
    peer.send(&batch("a", (1, 0), 2)).await;
    peer.acked(1).await;
    assert_eq!(ingest.rejected("sender_taken"), 2);
}

#[tokio::test]
async fn records_that_no_receiver_would_take_are_refused_whole() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "a").await;
    // A batch whose number is not beyond what is settled.
    peer.send(&batch("a", (5, 5), 2)).await;
    assert_eq!(peer.reject().await.reason, RejectReason::Malformed);
    assert_eq!(ingest.rejected("bad_seq"), 1);
    // One that is too far ahead may come again later.
    peer.send(&batch("a", (2_000, 0), 2)).await;
    let reject = peer.reject().await;
    assert_eq!((reject.reason, reject.seq), (RejectReason::TooFar, 2_000));
    assert!(!reject.is_final(), "{reject:?}");
    peer.send(&batch("a", (2_000, 1_999), 2)).await;
    peer.acked(2_000).await;
    assert_eq!(ingest.stored("a").await, 2);
}

#[tokio::test]
async fn a_frame_that_comes_byte_by_byte_is_a_frame() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "a").await;
    let records = [record("a", 3), record("a", 4)];
    for byte in batch_of(MessageClass::Data, (1, 0), &records).chunks(1) {
        peer.send(byte).await;
        tokio::time::sleep(std::time::Duration::from_micros(200)).await;
    }
    peer.acked(1).await;
    let rows = ingest.usage().await;
    assert_eq!(rows[0].quantity, Some(7.into()));
}
