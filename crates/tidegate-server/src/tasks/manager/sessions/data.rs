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
    let mut seq = 0;
    while session.is_live(id) {
        let (refused, wants_ack) = tokio::select! {
            biased;
            // First: what is left of an old session must not take the news of the next one.
            () = session.over(id) => break,
            frame = reader.next() => match take_frame(hub, session, &frame?)? {
                Taken { seq: Some(number), refused, has_end } => {
                    seq = number;
                    if has_end {
                        let _ = timeout(DURABLE_WAIT, session.ended.notified()).await;
                    }
                    (refused, true)
                }
                Taken { seq: None, .. } => (0, false),
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
        // One busy worker must not keep the thread from the others.
        tokio::task::consume_budget().await;
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
