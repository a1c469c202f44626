//! AD-37 at a manager: a real manager, whose workers are the test.

use super::bed::{Bed, BedSettings, until};
use super::peer_worker::{PeerWorker, progress_of, update};
use crate::folder::TempFolder;
use tidegate::MessageClass;
use tidegate::frame::FrameKind;
use tidegate::signal::BackpressureLevel::{self, Batch, None as Clear, Reject, Throttle};
use tidegate::task::TaskStatus;
use tidegate_server::tasks::session::{
    BufferMetrics, ExecutionUpdate, UpdateAck, UpdateBatch, WorkerStats, encode,
};

/// Updates that may wait at the manager.
const UPDATES_MAX: u64 = 100;
/// Updates that bring an empty buffer to each level.
const FILLS: [(usize, BackpressureLevel); 4] =
    [(10, Clear), (70, Throttle), (85, Batch), (95, Reject)];
/// Tries to meet a level before the consumer has emptied the buffer.
const TRIES: usize = 500;

fn small(folder: &TempFolder) -> Bed {
    Bed::start(folder, BedSettings { updates_max: UPDATES_MAX, ..BedSettings::default() })
}

/// Waits until the manager has consumed everything.
async fn until_empty(bed: &Bed) {
    until(|| bed.hub().list().stats_buffer.waiting == 0).await;
}

/// Sends `filling` updates and then others, in one write. Returns the acknowledgement of the others.
async fn tell_at(
    peer: &mut PeerWorker,
    seq: &mut u64,
    filling: usize,
    (updates, merged): (Vec<ExecutionUpdate>, bool),
) -> UpdateAck {
    let mut frames = Vec::new();
    for (updates, merged) in [(progress_of(0, filling), true), (updates, merged)] {
        *seq += 1;
        let batch = UpdateBatch { seq: *seq, merged, updates };
        encode(&mut frames, FrameKind::Progress, &batch).unwrap();
    }
    peer.data_out.write(&frames).await.unwrap();
    loop {
        let ack = peer.acked().await;
        if ack.seq == *seq {
            return ack;
        }
    }
}

#[test]
fn ad37_acks_tell_the_level_of_the_fill_up_and_down_and_in_jumps() {
    let folder = TempFolder::new("levels-acks");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 0).await;
        let delays_ms = [0, 50, 200, 500];
        for (at, there) in
            [(0, 1), (1, 2), (2, 3), (3, 0), (0, 3), (3, 2), (2, 1), (1, 0), (0, 2), (1, 3)]
        {
            for step in [at, there] {
                let (updates, level) = FILLS[step];
                until_empty(&bed).await;
                let signal = peer.tell(progress_of(0, updates), true).await.signal;
                assert_eq!((signal.level, signal.delay_ms), (level, delays_ms[level.index()]));
                assert_eq!(signal.batch_only, level >= Batch);
                assert_eq!(signal.drop_non_critical, level == Reject);
                assert!(signal.ttl_ms > 2 * signal.delay_ms, "it outlives its delay");
            }
        }
    });
}

#[test]
fn ad37_thresholds_are_those_of_the_seed() {
    let folder = TempFolder::new("levels-thresholds");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 0).await;
        let table = [
            (69, Clear),
            (70, Throttle),
            (84, Throttle),
            (85, Batch),
            (94, Batch),
            (95, Reject),
            (100, Reject),
        ];
        for (updates, level) in table {
            until_empty(&bed).await;
            let ack = peer.tell(progress_of(0, updates), true).await;
            assert_eq!((ack.signal.level, ack.refused), (level, 0), "{updates}");
        }
        until_empty(&bed).await;
        let ack = peer.tell(progress_of(0, 130), true).await;
        assert_eq!((ack.signal.level, ack.refused), (Reject, 30), "the bound is exact");
    });
}

#[test]
fn ad37_reject_clears_by_itself() {
    let folder = TempFolder::new("levels-clear");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 0).await;
        assert_eq!(peer.tell(progress_of(0, 100), true).await.signal.level, Reject);
        // Without another message.
        until(|| bed.hub().list().stats_buffer.level == Clear).await;
        assert_eq!(peer.tell(progress_of(0, 1), false).await.signal.level, Clear);
    });
}

#[test]
fn ad37_what_comes_alone_is_refused_with_the_signal_from_batch_on() {
    let folder = TempFolder::new("levels-alone");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 0).await;
        for (filling, level) in FILLS {
            for merged in [false, true] {
                let mut seq = 0;
                let mut tries = 0..TRIES;
                let ack = loop {
                    assert!(tries.next().is_some(), "{level} was never met");
                    until_empty(&bed).await;
                    let updates = vec![update("alone", "running", "", Some(1))];
                    let ack = tell_at(&mut peer, &mut seq, filling, (updates, merged)).await;
                    if ack.signal.level == level {
                        break ack;
                    }
                };
                let refused = u32::from(level >= Batch && !merged);
                assert_eq!(ack.refused, refused, "{level}, merged: {merged}");
            }
        }
        let totals = bed.hub().list().stats_buffer.totals;
        assert!(totals.unbatched > 0, "{totals:?}");
    });
}

#[test]
fn ad37_telemetry_is_dropped_at_reject_and_statistics_are_not() {
    let folder = TempFolder::new("levels-telemetry");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 0).await;
        let telemetry = MessageClass::Telemetry.index();
        let dropped = || bed.hub().list().stats_buffer.totals.dropped;
        peer.send_debug(&BufferMetrics { merged: 7, ..BufferMetrics::default() }).await;
        until(|| bed.worker("p1").unwrap().buffers.is_some_and(|buffers| buffers.merged == 7))
            .await;
        assert_eq!(dropped()[telemetry], 0, "taken without backpressure");
        for seq in 1..=TRIES as u64 {
            until_empty(&bed).await;
            let mut frames = Vec::new();
            let batch = UpdateBatch { seq, merged: true, updates: progress_of(0, 96) };
            encode(&mut frames, FrameKind::Progress, &batch).unwrap();
            encode(&mut frames, FrameKind::Debug, &BufferMetrics::default()).unwrap();
            let stats = WorkerStats { running: 3, ..WorkerStats::default() };
            encode(&mut frames, FrameKind::Stats, &stats).unwrap();
            peer.data_out.write(&frames).await.unwrap();
            peer.acked().await;
            until_empty(&bed).await;
            until(|| bed.worker("p1").unwrap().stats.is_some_and(|stats| stats.running == 3)).await;
            if dropped()[telemetry] > 0 {
                break;
            }
        }
        let dropped = dropped();
        assert!(dropped[telemetry] > 0, "REJECT was never met");
        assert_eq!((dropped[0], dropped[1], dropped[2]), (0, 0, 0), "no other class");
    });
}

#[test]
fn ad37_ends_are_accepted_at_every_level_with_their_progress() {
    let folder = TempFolder::new("levels-ends");
    let bed = small(&folder);
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 1).await;
        let mut seq = 0;
        for (nth, (filling, level)) in FILLS.into_iter().enumerate() {
            let id = bed.submit(&format!("t{nth}"), "x").await;
            assert_eq!(peer.accept().await, id.as_str());
            until_empty(&bed).await;
            let end = vec![update(id.as_str(), "succeeded", "out\n", Some(41))];
            let ack = tell_at(&mut peer, &mut seq, filling, (end, false)).await;
            assert_eq!(ack.refused, 0, "{level}");
            let view = bed.until_over(&id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{level}");
            assert_eq!(bed.text(&id).await, "out\n");
            peer.report().await;
        }
    });
}
