use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate::frame::{
    Ack, Batch, BatchBuilder, FrameError, FrameKind, FrameLimits, Hello, RawFrame, Reassembler,
    Reject, Welcome,
};
use tidegate::usage::Names;
use tidegate_server::tasks::session::{
    self, BufferMetrics, Dispatch, Interest, Join, JoinAnswer, UpdateAck, UpdateBatch, WorkerState,
    WorkerStats,
};

/// Small, so that short inputs reach every bound.
const LIMITS: FrameLimits =
    FrameLimits { frame_bytes_max: 2048, batch_records_max: 16, batch_names_max: 16 };

/// The frames of a stream in order, with those that are refused, until the stream is broken.
type Read = Vec<Result<RawFrame, FrameError>>;

/// Reads frames whole and cut into pieces, and decodes, encodes and decodes each.
pub fn run(input: &[u8]) -> bool {
    let whole = read(input, input.len().max(1));
    for piece_bytes in [1, 2 + input.len() % 61] {
        assert_eq!(read(input, piece_bytes), whole, "in pieces of {piece_bytes} bytes");
    }
    let mut names = Names::with_capacity(8);
    let frames = whole.iter().flatten();
    frames.fold(false, |decoded, frame| round_trip(frame, &mut names) | decoded)
}

fn read(input: &[u8], piece_bytes: usize) -> Read {
    let mut reassembler = Reassembler::new(LIMITS);
    let mut read = Vec::new();
    for piece in input.chunks(piece_bytes) {
        reassembler.push(Bytes::copy_from_slice(piece));
        loop {
            match reassembler.next() {
                Ok(Some(frame)) => {
                    assert!(frame.frame_bytes() <= LIMITS.frame_bytes_max as usize);
                    read.push(Ok(frame));
                }
                Ok(None) => break,
                Err(error) if error.breaks_framing() => {
                    assert_eq!(reassembler.next().as_ref(), Err(&error), "nothing follows");
                    assert_eq!(reassembler.held_bytes(), 0);
                    read.push(Err(error));
                    return read;
                }
                Err(error) => read.push(Err(error)),
            }
        }
        assert!(reassembler.held_bytes() <= LIMITS.frame_bytes_max as usize);
    }
    read
}

/// Checks that the content of a frame survives encoding. Returns true if it has content.
fn round_trip(frame: &RawFrame, names: &mut Names) -> bool {
    match frame.kind {
        FrameKind::Hello => {
            let hello = Hello::decode(frame);
            let welcome = Welcome::decode(frame);
            assert!(hello.is_err() || welcome.is_err(), "a hello has one meaning");
            if let Ok(hello) = &hello {
                assert_eq!(Hello::decode(&one(hello.encode())).as_ref(), Ok(hello));
            }
            if let Ok(welcome) = &welcome {
                assert_eq!(Welcome::decode(&one(welcome.encode())).as_ref(), Ok(welcome));
            }
            hello.is_ok() || welcome.is_ok()
        }
        FrameKind::Ack => match Ack::decode(frame) {
            Ok(ack) => {
                assert_eq!(Ack::decode(&one(ack.encode())).as_ref(), Ok(&ack));
                assert!(ack.seqs.iter().all(|seq| ack.seqs.contains(seq)));
                true
            }
            Err(_) => false,
        },
        FrameKind::Reject => match Reject::decode(frame) {
            Ok(reject) => {
                assert!(reject.message.len() <= Reject::MESSAGE_BYTES_MAX);
                assert_eq!(Reject::decode(&one(reject.encode())).as_ref(), Ok(&reject));
                true
            }
            Err(_) => false,
        },
        FrameKind::Batch => match Batch::decode(frame, &LIMITS, names) {
            Ok(batch) => {
                check_batch(frame, &batch, names);
                true
            }
            Err(_) => false,
        },
        _ => session_round_trip(frame),
    }
}

fn check_batch(frame: &RawFrame, batch: &Batch, names: &mut Names) {
    assert_eq!(frame.peek_seq(), Some(batch.seq), "the number is known before the body is read");
    assert!(batch.settled < batch.seq);
    let mut builder = BatchBuilder::new(LIMITS);
    for record in &batch.records {
        // The builder's form of the records may be longer than the sender's, which names no text twice.
        if builder.push(record).is_err() {
            return;
        }
    }
    let again = one(builder.finish(batch.seq, batch.settled, batch.class));
    assert_eq!(Batch::decode(&again, &LIMITS, names).as_ref(), Ok(batch));
}

fn one(encoded: Bytes) -> RawFrame {
    // What is encoded here may have more than the limits of this target allow a sender.
    let mut reassembler = Reassembler::new(FrameLimits::default());
    reassembler.push(encoded);
    let frame = reassembler.next().expect("what was encoded is a frame");
    assert!(!reassembler.is_within_frame(), "and nothing else");
    frame.expect("a whole one")
}

/// Checks that the content of a session's frame survives encoding. Returns true if it has content.
fn session_round_trip(frame: &RawFrame) -> bool {
    match frame.kind {
        FrameKind::Join => same::<Join>(frame) | same::<JoinAnswer>(frame),
        FrameKind::Cancel => same::<Vec<String>>(frame),
        FrameKind::Lease => same::<Vec<Interest>>(frame),
        FrameKind::Execute => same::<Dispatch>(frame),
        FrameKind::State => same::<WorkerState>(frame),
        FrameKind::Progress => same::<UpdateBatch>(frame),
        FrameKind::ProgressAck => same::<UpdateAck>(frame),
        FrameKind::Stats => same::<WorkerStats>(frame),
        FrameKind::Debug => same::<BufferMetrics>(frame),
        FrameKind::Hello | FrameKind::Batch | FrameKind::Ack | FrameKind::Reject => false,
    }
}

/// Decodes a body, and encodes it again: the second encoding must be as the first.
fn same<B: Serialize + DeserializeOwned>(frame: &RawFrame) -> bool {
    let Ok(body) = session::decode::<B>(frame) else { return false };
    let encode = |body: &B| {
        let mut out = Vec::new();
        session::encode(&mut out, frame.kind, body).expect("what was decoded can be encoded");
        out
    };
    let first = encode(&body);
    let again: B = session::decode(&one(first.clone().into())).expect("our own encoding");
    // Texts are compared, because a NaN differs from itself.
    assert_eq!(encode(&again), first);
    true
}
