use super::hub::WorkerHub;
use super::stats::{StatsKey, StatsValue};
use super::worker_session::WorkerSession;
use crate::tasks::session::{
    BufferMetrics, FrameReader, FrameWriter, SessionError, UpdateAck, UpdateBatch, WorkerStats,
    decode,
};
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::frame::{FrameKind, RawFrame};
use tidegate::signal::{StatsOffer, Update};
use tokio::time::timeout;

/// Time that the acknowledgement of an end waits for the end to become durable, so that one message says both.
const DURABLE_WAIT: Duration = Duration::from_millis(5);
/// Bytes of frames after which others have their turn: a batch of a worker that follows its signals is shorter.
const TURN_BYTES: usize = 16 << 10;
/// Longest time that a worker may leave its acknowledgements unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Takes in what a worker reports on its data connection, until the session or the connection ends.
///
/// Nothing here waits for the manager's thread: what it can't take yet is merged in the buffer, or refused with
/// the buffer's signal. So ends and output are received at every level.
pub(super) async fn take_data(
    hub: &Arc<WorkerHub>,
    session: &Arc<WorkerSession>,
    id: u64,
    reader: &mut FrameReader,
    writer: &mut FrameWriter,
) -> Result<(), SessionError> {
    let (mut seq, mut turn_bytes) = (0, 0);
    while session.is_live(id) {
        let (refused, wants_ack) = tokio::select! {
            biased;
            // First: what is left of an old session must not take the news of the next one.
            () = session.over(id) => break,
            frame = reader.next() => {
                let frame = frame?;
                turn_bytes += frame.body.len();
                match take_frame(hub, session, &frame)? {
                    Taken { seq: Some(number), refused, has_end } => {
                        seq = number;
                        if has_end {
                            let _ = timeout(DURABLE_WAIT, session.ended.notified()).await;
                        }
                        (refused, true)
                    }
                    Taken { seq: None, .. } => (0, false),
                }
            },
            () = session.ended.notified() => (0, true),
        };
        if wants_ack {
            if !session.is_live(id) {
                // The session that has replaced this one acknowledges the ends.
                session.ended.notify_one();
                break;
            }
            let ended = session.take_ended();
            let ack = UpdateAck { seq, signal: hub.stats.signal(), refused, ended };
            let written = timeout(WRITE_TIMEOUT, writer.send(FrameKind::ProgressAck, &ack)).await;
            written.map_err(|_| SessionError::Timeout(WRITE_TIMEOUT))??;
        }
        // One busy worker must not keep the thread from the others, nor from the ends that they report.
        if turn_bytes >= TURN_BYTES {
            turn_bytes = 0;
            tokio::task::yield_now().await;
        } else {
            tokio::task::consume_budget().await;
        }
    }
    Ok(())
}

struct Taken {
    seq: Option<u64>,
    refused: u32,
    has_end: bool,
}

fn take_frame(
    hub: &WorkerHub,
    session: &WorkerSession,
    frame: &RawFrame,
) -> Result<Taken, SessionError> {
    let permit = hub.stats.tracker.try_acquire_owned(frame.class.priority()).ok();
    let offer = |update| StatsOffer { class: frame.class, update, batched: true };
    let nothing = Taken { seq: None, refused: 0, has_end: false };
    match frame.kind {
        FrameKind::Progress => {
            let batch: UpdateBatch = decode(frame)?;
            Ok(take_batch(hub, session, batch, permit))
        }
        FrameKind::Stats => {
            if let Some(permit) = permit {
                let stats: WorkerStats = decode(frame)?;
                let key = StatsKey::Worker(session.name().into());
                let value = StatsValue::Worker(stats);
                hub.stats.record([(key, offer(Update::Progress), value)], Some(permit));
            }
            Ok(nothing)
        }
        FrameKind::Debug => {
            if let Some(permit) = permit {
                let debug: BufferMetrics = decode(frame)?;
                let key = StatsKey::Debug(session.name().into());
                let value = StatsValue::Debug(debug);
                hub.stats.record([(key, offer(Update::Progress), value)], Some(permit));
            }
            Ok(nothing)
        }
        given => {
            Err(SessionError::Unexpected { given, expected: "progress, stats or debug frames" })
        }
    }
}

/// Takes in updates: states, output and ends always, progress as far as admission and the buffer's level allow.
fn take_batch(
    hub: &WorkerHub,
    session: &WorkerSession,
    batch: UpdateBatch,
    permit: Option<tidegate::OwnedPermit>,
) -> Taken {
    let UpdateBatch { seq, merged, updates } = batch;
    let batched = merged || updates.len() > 1;
    let (mut progress, mut has_end, mut gaps) = (Vec::new(), false, 0);
    for mut update in updates {
        let is_end = update.view.ending().is_some();
        has_end |= is_end;
        if let Some(value) = update.view.progress.take()
            && let Ok(key) = update.view.id.parse()
        {
            let update = if is_end { Update::Final } else { Update::Progress };
            let offer = StatsOffer { class: MessageClass::Data, update, batched };
            progress.push((StatsKey::Execution(key), offer, StatsValue::Progress(value)));
        }
        if !session.take_update(update) {
            gaps += 1;
        }
    }
    if gaps > 0 {
        tracing::warn!(worker = session.name(), gaps, "output is missing before an update");
    }
    // Without a permit the frame is shed: only the progress of ends is recorded.
    let shed = permit.is_none();
    let before = progress.len();
    progress.retain(|(_, offer, _)| !shed || offer.update == Update::Final);
    let shed = before - progress.len();
    let refused = hub.stats.record(progress, permit);
    let refused = refused.saturating_add(u32::try_from(shed).unwrap_or(u32::MAX));
    Taken { seq: Some(seq), refused, has_end }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::sessions::consumer::consume_forever;
    use crate::tasks::manager::sessions::{HubSettings, session_channels};
    use crate::tasks::session::{ExecutionUpdate, FrameReader, encode};
    use tidegate::MessagePriority;
    use tidegate::signal::BackpressureLevel;

    async fn frame<B: serde::Serialize>(kind: FrameKind, body: &B) -> RawFrame {
        let mut bytes = Vec::new();
        encode(&mut bytes, kind, body).unwrap();
        FrameReader::new(std::io::Cursor::new(bytes)).next().await.unwrap()
    }

    /// One update of progress, as a batch of its own.
    fn alone(nth: u64) -> UpdateBatch {
        let view = serde_json::json!({
            "id": format!("t{nth}@1"), "eval_id": format!("t{nth}"), "attempt": 1, "fence": 1,
            "state": "running", "progress": {"counters": {"rows": nth}},
        });
        let view = serde_json::from_value(view).unwrap();
        UpdateBatch { seq: nth, merged: true, updates: vec![ExecutionUpdate { after: 0, view }] }
    }

    /// Small frames use the admission up long before they fill the buffer: a worker that follows its signal has
    /// to hear of it before it is shed.
    #[tokio::test(start_paused = true)]
    async fn ad32_a_frame_is_in_flight_until_it_is_consumed_and_telemetry_is_shed_first() {
        let (outlet, mut inlet) = session_channels();
        let settings = HubSettings { updates_max: 16_384, ..HubSettings::default() };
        let hub = WorkerHub::new(settings, outlet).unwrap();
        let worker = hub.worker("w").unwrap();
        let debug = frame(FrameKind::Debug, &BufferMetrics::default()).await;
        for _ in 0..1_100 {
            assert!(take_frame(&hub, &worker, &debug).unwrap().seq.is_none());
        }
        let admission = hub.stats.view().admission;
        assert_eq!((admission.low_in_flight, admission.low_shed), (1_000, 100));
        assert_eq!(hub.stats.view().level, BackpressureLevel::None, "telemetry slows nobody");
        let mut levels = Vec::new();
        for nth in 0..1_510 {
            let progress = frame(FrameKind::Progress, &alone(nth)).await;
            let refused = take_frame(&hub, &worker, &progress).unwrap().refused;
            levels.push(hub.stats.signal().level);
            assert_eq!(refused, u32::from(nth >= 1_500), "{nth}");
        }
        let [none, throttle, batch, reject] = [1_048, 1_273, 1_423, 1_424].map(|nth| levels[nth]);
        assert_eq!([none, throttle], [BackpressureLevel::None, BackpressureLevel::Throttle]);
        assert_eq!([batch, reject], [BackpressureLevel::Batch, BackpressureLevel::Reject]);
        let view = hub.stats.view();
        assert_eq!((view.admission.normal_in_flight, view.admission.normal_shed), (1_500, 10));
        assert!(view.waiting < view.capacity / 4, "{} wait", view.waiting);
        assert!(hub.stats.tracker.try_acquire(MessagePriority::Critical).is_ok());
        tokio::spawn(consume_forever(Arc::clone(&hub)));
        let consuming = async {
            while hub.stats.view().admission.total_in_flight > 0 {
                assert!(inlet.progress.recv().await.is_some_and(|taken| !taken.is_empty()));
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), consuming).await.expect("all are consumed");
        assert_eq!(hub.stats.view().level, BackpressureLevel::None);
    }
}
