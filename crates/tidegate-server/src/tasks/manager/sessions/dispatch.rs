use super::roster::{Roster, WorkerName};
use super::worker_session::WorkerSession;
use crate::tasks::execution::{ExecuteBody, ReserveBody};
use crate::tasks::session::{Dispatch, Interest, SessionError, encode};
use std::sync::Arc;
use std::time::Duration;
use tidegate::frame::FrameKind;
use tidegate::outbox::{Delivery, Failure, OutgoingConfig, QueueConfig, Transport, Undelivered};
use tidegate::{MessageClass, Role};

/// Messages of one write.
const BATCH_MAX: usize = 64;
/// Longest time of one write to a worker, which reads at once while it is alive.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Message to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum ToWorker {
    /// Start an execution.
    Execute(ExecuteBody),
    /// Reserve a slot.
    Reserve(ReserveBody),
    /// Cancel an execution, `eval_id@attempt`.
    Cancel(String),
    /// Renew leases, and report these executions.
    Renew(Vec<Interest>),
}

/// Sends batches of messages by the control connections of workers.
pub(super) struct WorkerTransport {
    pub(super) roster: Arc<Roster>,
}

// === impl ToWorker ===

impl ToWorker {
    /// Class of the message.
    #[must_use]
    pub fn class(&self) -> MessageClass {
        self.kind().class()
    }

    fn kind(&self) -> FrameKind {
        match self {
            Self::Execute(_) | Self::Reserve(_) => FrameKind::Execute,
            Self::Cancel(_) => FrameKind::Cancel,
            Self::Renew(_) => FrameKind::Lease,
        }
    }
}

// === impl WorkerTransport ===

impl Transport for WorkerTransport {
    type Destination = WorkerName;
    type Message = ToWorker;
    type Reply = ();
    type Error = SessionError;

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    async fn send(
        &self,
        destination: &WorkerName,
        batch: &[ToWorker],
    ) -> Delivery<(), SessionError> {
        let unreachable = || Undelivered::all(Failure::Unreachable, SessionError::Closed);
        let session = self.roster.find(destination.as_str()).ok_or_else(unreachable)?;
        let frames = frames(batch).map_err(|error| Undelivered::all(Failure::Final, error))?;
        let mut control = session.control.lock().await;
        let (id, mut writer) = control.take().ok_or_else(unreachable)?;
        let writing = Writing { session: &session, id };
        match writer.write(&frames).await {
            Ok(()) => {
                std::mem::forget(writing);
                *control = Some((id, writer));
                Ok(vec![(); batch.len()])
            }
            Err(error) => Err(Undelivered::all(Failure::Lost, error)),
        }
    }
}

/// A write that has begun. Dropped, it has failed or was given up half way: nothing can follow the part of a frame
/// that may have been written, so the session is over.
struct Writing<'a> {
    session: &'a WorkerSession,
    id: u64,
}

// === impl Writing ===

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.session.break_off(self.id);
    }
}

/// Frames of a batch: neighbours of one kind share a frame.
fn frames(batch: &[ToWorker]) -> Result<Vec<u8>, SessionError> {
    let mut out = Vec::new();
    for run in batch.chunk_by(|a, b| a.kind() == b.kind()) {
        let Some(kind) = run.first().map(ToWorker::kind) else { continue };
        let mut dispatch = Dispatch::default();
        let (mut cancels, mut interests) = (Vec::new(), Vec::new());
        for message in run.iter().cloned() {
            match message {
                ToWorker::Execute(body) => dispatch.executes.push(body),
                ToWorker::Reserve(body) => dispatch.reserves.push(body),
                ToWorker::Cancel(id) => cancels.push(id),
                ToWorker::Renew(renewed) => interests.extend(renewed),
            }
        }
        match kind {
            FrameKind::Cancel => encode(&mut out, kind, &cancels)?,
            FrameKind::Lease => encode(&mut out, kind, &interests)?,
            _ => encode_dispatch(&mut out, dispatch)?,
        }
    }
    Ok(out)
}

/// Frames of a dispatch, none beyond the longest frame: one for each execution with long code.
fn encode_dispatch(out: &mut Vec<u8>, dispatch: Dispatch) -> Result<(), SessionError> {
    const CODE_BYTES_MAX: usize = 1 << 20;
    let Dispatch { executes, reserves } = dispatch;
    let mut part = Dispatch { executes: Vec::new(), reserves };
    let mut bytes = 0;
    for body in executes {
        let size = body.code.len() + body.args.iter().map(String::len).sum::<usize>();
        if bytes + size > CODE_BYTES_MAX && !part.executes.is_empty() {
            encode(out, FrameKind::Execute, &std::mem::take(&mut part))?;
            bytes = 0;
        }
        bytes += size;
        part.executes.push(body);
    }
    match part.executes.is_empty() && part.reserves.is_empty() {
        true => Ok(()),
        false => encode(out, FrameKind::Execute, &part),
    }
}

/// Configuration of the queues to workers. A dispatch is sent once: the manager queues its task again if it was
/// not sent, and looks for it at the worker if it may have been.
pub(super) fn outgoing_config(workers_max: usize) -> OutgoingConfig {
    OutgoingConfig {
        queue: QueueConfig::for_role(Role::Manager),
        max_destinations: workers_max,
        attempt_timeout: WRITE_TIMEOUT,
        message_timeout: WRITE_TIMEOUT,
        attempts_max: 1,
        ..OutgoingConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::session::{FrameReader, FrameWriter};
    use tidegate::outbox::OutgoingRequestManager;
    use tokio::io::{DuplexStream, duplex};

    /// A connected worker whose connection takes this many bytes that it has not read.
    async fn connect(roster: &Roster, name: &str, bytes: usize) -> DuplexStream {
        let (ours, theirs) = duplex(bytes);
        let session = roster.find_or_add(name).expect("room");
        *session.control.lock().await = Some((1, FrameWriter::new(ours)));
        theirs
    }

    #[tokio::test]
    async fn the_queue_of_the_worker_used_least_recently_makes_room_and_one_in_use_does_not() {
        let roster = Arc::new(Roster::default());
        let mut peers = Vec::new();
        for (name, bytes) in [("stuck", 8), ("old", 4_096), ("new", 4_096), ("newer", 4_096)] {
            peers.push(connect(&roster, name, bytes).await);
        }
        let transport = WorkerTransport { roster };
        let (outgoing, _hand_back) =
            OutgoingRequestManager::new(transport, outgoing_config(3)).expect("valid");
        let outgoing = Arc::new(outgoing);
        let cancel = |id: &str| ToWorker::Cancel(id.to_owned());
        let (stuck, control) = (WorkerName::new("stuck"), MessageClass::Control);
        // Its write goes on for as long as the worker does not read.
        let long = cancel("longer than its connection takes");
        let put = outgoing.enqueue(&stuck, control, long).expect("room");
        assert_eq!(put.dropped, None);
        for name in ["old", "new"] {
            outgoing.send(&WorkerName::new(name), control, cancel(name)).await.expect("sent");
        }
        let newer = WorkerName::new("newer");
        outgoing.send(&newer, control, cancel("now")).await.expect("there is room");
        assert_eq!((outgoing.totals().destinations, outgoing.totals().evicted), (3, 1));
        assert!(
            outgoing.stats_of(&WorkerName::new("old")).is_none(),
            "it was used before the others"
        );
        assert!(outgoing.stats_of(&stuck).is_some(), "it has a message");
        let mut reader = FrameReader::new(peers.pop().expect("connected"));
        let ids: Vec<String> = reader.next_of(FrameKind::Cancel).await.expect("a frame");
        assert_eq!(ids, ["now"]);
        // What the stuck worker was sent arrives once it reads.
        let mut reader = FrameReader::new(peers.swap_remove(0));
        let ids: Vec<String> = reader.next_of(FrameKind::Cancel).await.expect("a frame");
        assert_eq!(ids, ["longer than its connection takes"]);
    }
}
