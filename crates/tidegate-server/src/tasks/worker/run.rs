use super::control::obey;
use super::shared::{Connected, Shared};
use crate::tasks::execution::CapacityReport;
use crate::tasks::session::{
    FrameReader, FrameWriter, Join, JoinAnswer, Lane, SessionError, UpdateAck, Welcome,
};
use std::sync::Arc;
use std::time::Duration;
use tidegate::frame::FrameKind;
use tidegate::retry::full_jitter;
use tidegate::rng::Rng;
use tidegate::task::ExecutionKey;
use tokio::time::{Instant, sleep, timeout};

/// Version of the messages of a session.
pub(super) const SESSION_VERSION: u8 = 1;
/// Longest wait for the answer to a join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Waits between two connections: at most the first after the first failure, doubled with each further one.
const BACKOFF_BASE: Duration = Duration::from_millis(200);
const BACKOFF_CAP: Duration = Duration::from_secs(5);
/// A session that lasted so long was a success: the next failure is a first one.
const STABLE_AFTER: Duration = Duration::from_secs(10);

/// Keeps a session with the manager, for ever: executions go on while there is none. Returns when the manager
/// refuses this worker for good.
pub(super) async fn keep_session(shared: Arc<Shared>) -> SessionError {
    let rng = Rng::from_process();
    let mut failures = 0_u32;
    loop {
        let began = Instant::now();
        let Err(error) = run_session(&shared).await;
        shared.data.detach().await;
        shared.followed.clear();
        shared.forget_signal();
        let is_final = matches!(error, SessionError::Refused { is_final: true, .. });
        let text = error.to_string();
        shared.connected.send_replace(Connected {
            manager: None,
            error: Some(text.clone()),
            is_final,
        });
        if is_final {
            tracing::error!(manager = %shared.manager, error = text, "the manager refuses this worker");
            return error;
        }
        failures = if began.elapsed() >= STABLE_AFTER { 0 } else { failures };
        // The first of a series is worth a line: the others have the same cause.
        match failures {
            0 => {
                tracing::warn!(manager = %shared.manager, error = text, "not connected; trying again")
            }
            _ => {
                tracing::debug!(manager = %shared.manager, error = text, failures, "not connected")
            }
        }
        let wait = full_jitter(BACKOFF_BASE, BACKOFF_CAP, failures, rng.fraction());
        failures = failures.saturating_add(1);
        sleep(wait).await;
    }
}

async fn run_session(shared: &Arc<Shared>) -> Result<std::convert::Infallible, SessionError> {
    let (mut control_in, mut control_out, welcome) = join(shared, Lane::Control, None).await?;
    let session = Some(welcome.session);
    let (mut data_in, data_out, _) = join(shared, Lane::Data, session).await?;
    let connection = shared.data.attach(data_out).await;
    tracing::info!(manager = %shared.manager, name = welcome.manager, "connected");
    shared.connected.send_replace(Connected {
        manager: Some(welcome.manager),
        error: None,
        is_final: false,
    });
    let silence_max = Duration::from_millis(welcome.silence_ms_max.max(1_000));
    tokio::select! {
        ended = obey(shared, &mut control_in, &mut control_out, silence_max) => ended?,
        ended = take_acks(shared, &mut data_in) => ended?,
        () = shared.data.broken(connection) => {}
    }
    Err(SessionError::Closed)
}

/// Opens a connection of the session.
async fn join(
    shared: &Shared,
    lane: Lane,
    session: Option<u64>,
) -> Result<(FrameReader, FrameWriter, Welcome), SessionError> {
    let stream = shared.manager.connect(lane).await?;
    let (read, write) = tokio::io::split(stream);
    let (mut reader, mut writer) = (FrameReader::joining(read), FrameWriter::new(write));
    let join = Join {
        version: SESSION_VERSION,
        lane,
        worker: shared.executor.id().to_owned(),
        incarnation: shared.incarnation,
        session,
        token: shared.token.clone(),
        software: concat!("tidegate/", env!("CARGO_PKG_VERSION")).to_owned(),
        // Without the executions, which a join has no room for: the answer to the first lease has them.
        capacity: (lane == Lane::Control)
            .then(|| CapacityReport { executions: None, ..shared.executor.capacity() }),
    };
    writer.send(FrameKind::Join, &join).await?;
    let answer = timeout(JOIN_TIMEOUT, reader.next_of::<JoinAnswer>(FrameKind::Join)).await;
    match answer.map_err(|_| SessionError::Timeout(JOIN_TIMEOUT))?? {
        JoinAnswer::Welcome(welcome) => Ok((reader.joined(), writer, welcome)),
        JoinAnswer::Refused { reason, message, is_final } => {
            Err(SessionError::Refused { reason, message, is_final })
        }
    }
}

/// Takes in acknowledgements: signals, received batches and durable ends.
async fn take_acks(shared: &Shared, reader: &mut FrameReader) -> Result<(), SessionError> {
    loop {
        let ack: UpdateAck = reader.next_of(FrameKind::ProgressAck).await?;
        shared.record_signal(ack.signal);
        for id in &ack.ended {
            if let Ok(key) = id.parse::<ExecutionKey>() {
                shared.followed.forget(&key);
            }
        }
        shared.data.acked(&ack);
    }
}
