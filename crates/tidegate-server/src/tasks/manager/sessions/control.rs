use super::dispatch::ToWorker;
use super::hub::WorkerHub;
use super::roster::WorkerName;
use super::session_event::SessionEvent;
use super::worker_session::WorkerSession;
use crate::cluster::TrustedNodes;
use crate::http::tls::PeerCertificate;
use crate::tasks::session::{
    FrameReader, FrameWriter, Join, JoinAnswer, Lane, SessionError, Welcome, WorkerState, decode,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::frame::FrameKind;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// Version of the messages of a session.
const SESSION_VERSION: u8 = 1;
/// Renewals in the lease of an execution.
const RENEWALS: u32 = 6;

/// Why a worker may not join.
pub(super) struct Unwelcome {
    reason: &'static str,
    message: String,
    is_final: bool,
}

/// Checks the token and the certificate of a worker: one of both has to be that of a `[[worker]]`, if there are
/// any, and both that of the same one.
fn identify(
    hub: &WorkerHub,
    token: Option<&str>,
    certificate: Option<&PeerCertificate>,
) -> Result<(), (&'static str, &'static str)> {
    let identities = &hub.identities;
    if identities.is_empty() {
        return Ok(());
    }
    let conflict = "token and client certificate are of different entries of [[worker]]";
    let names = certificate.map_or(&[][..], PeerCertificate::names);
    let certified = identities.certified_holder(names);
    let certified = certified.map_err(|_| ("identity_conflict", conflict))?;
    match (token, certified) {
        (None, Some(_)) => Ok(()),
        (None, None) => {
            let message = "no token was given; set TIDEGATE_TOKEN to one of a [[worker]], or show the \
                           client certificate of one with --cert and --cert-key";
            Err(("token_missing", message))
        }
        (Some(token), certified) => match (identities.find(token.as_bytes()), certified) {
            (None, _) => {
                Err(("token_unknown", "the token is not one of a [[worker]] of this manager"))
            }
            (Some(one), Some(other)) if one != other => Err(("identity_conflict", conflict)),
            (Some(_), _) => Ok(()),
        },
    }
}

/// Proof of a worker that it may join, before its token is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// None: a token is needed where there are some.
    Nothing,
    /// The certificate of a node of the cluster, with the name of the worker.
    Node,
}

/// Checks the certificate of a worker where workers are nodes of a cluster.
pub(super) fn check_node(
    nodes: Option<&TrustedNodes>,
    shown: Option<&PeerCertificate>,
    name: &str,
) -> Result<Proof, Unwelcome> {
    let Some(nodes) = nodes else { return Ok(Proof::Nothing) };
    let refuse = |message| Err(Unwelcome { reason: "not_a_worker", message, is_final: true });
    match nodes.check(shown) {
        Ok(node) if node.node == name => Ok(Proof::Node),
        Ok(node) => refuse(format!("the certificate is that of {node}, and the name is {name:?}")),
        Err(message) => refuse(message),
    }
}

/// Checks a join, and begins the session of a control connection.
pub(super) fn welcome(
    hub: &WorkerHub,
    lane: Lane,
    join: Join,
    (peer, certificate): (SocketAddr, Option<&PeerCertificate>),
    proof: Proof,
) -> Result<(Arc<WorkerSession>, u64), Unwelcome> {
    let refuse = |reason, message: String, is_final| Err(Unwelcome { reason, message, is_final });
    if join.version != SESSION_VERSION || join.lane != lane {
        let message = format!(
            "version {} was given; this manager speaks {SESSION_VERSION}: use the same version of \
             tidegate on both sides",
            join.version
        );
        return refuse("unknown_version", message, true);
    }
    let identified = match proof {
        Proof::Node => Ok(()),
        Proof::Nothing => identify(hub, join.token.as_deref(), certificate),
    };
    if let Err((reason, message)) = identified {
        return refuse(reason, message.to_owned(), true);
    }
    let name = join.worker.clone();
    if !WorkerName::is_valid(&name) || hub.settings.reserved_names.contains(&name) {
        let message = "the name is another executor's, or not 1 … 64 letters, digits and . _ : -; \
                       choose one with --executor-id";
        return refuse("name_invalid", message.to_owned(), true);
    }
    let Some(session) = hub.worker(&name) else {
        return refuse("too_many_workers", "the manager has too many workers".to_owned(), false);
    };
    match lane {
        Lane::Data => match join.session.filter(|id| session.begin_data(*id)) {
            Some(id) => Ok((session, id)),
            None => refuse("session_over", "the session is over; join again".to_owned(), false),
        },
        Lane::Control => {
            let id = hub.next_session();
            match session.begin(id, join, peer, hub.settings.lease) {
                Ok(()) => Ok((session, id)),
                Err(other) => {
                    let message = format!(
                        "a worker named {name} is connected from {}; choose another name with \
                         --executor-id",
                        other.peer
                    );
                    refuse("name_in_use", message, false)
                }
            }
        }
    }
}

impl Unwelcome {
    pub(super) fn answer(self) -> JoinAnswer {
        let Self { reason, message, is_final } = self;
        JoinAnswer::Refused { reason: reason.to_owned(), message, is_final }
    }

    pub(super) fn reason(&self) -> &'static str {
        self.reason
    }
}

/// Terms of a session.
pub(super) fn terms(hub: &WorkerHub, session: u64) -> JoinAnswer {
    let silence_ms_max = u64::try_from(hub.settings.lease.as_millis()).unwrap_or(u64::MAX);
    JoinAnswer::Welcome(Welcome { session, manager: hub.settings.manager.clone(), silence_ms_max })
}

/// Serves the control connection of a session until it ends: the worker is welcomed, answers and states come in,
/// and leases are renewed.
pub(super) async fn serve_control(
    hub: &Arc<WorkerHub>,
    session: &Arc<WorkerSession>,
    id: u64,
    mut reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), SessionError> {
    // Also a session whose worker has vanished before it was welcomed has to be ended.
    let served = match writer.send(FrameKind::Join, &terms(hub, id)).await {
        Ok(()) => {
            *session.control.lock().await = Some((id, writer));
            let report = session.capacity();
            let up = SessionEvent::Up { worker: Arc::clone(session), report: report.map(Box::new) };
            let _ = hub.outlet.events.send(up).await;
            exchange(hub, session, id, &mut reader).await
        }
        Err(error) => Err(error),
    };
    if session.end(id) {
        let mut control = session.control.lock().await;
        if control.as_ref().is_some_and(|(current, _)| *current == id) {
            *control = None;
        }
        drop(control);
        let down = SessionEvent::Down { name: session.name().into() };
        let _ = hub.outlet.events.send(down).await;
    }
    served
}

async fn exchange(
    hub: &Arc<WorkerHub>,
    session: &WorkerSession,
    id: u64,
    reader: &mut FrameReader,
) -> Result<(), SessionError> {
    let silence_max = hub.settings.lease;
    let mut renewals = interval((silence_max / RENEWALS).max(Duration::from_millis(10)));
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut until = Instant::now() + silence_max;
    loop {
        tokio::select! {
            biased;
            () = session.over(id) => return Err(SessionError::Closed),
            frame = timeout_at(until, reader.next()) => {
                let frame = frame.map_err(|_| SessionError::Timeout(silence_max))??;
                // Counted, and never shed: an answer that is lost would cost more than it saves.
                let _permit = hub.stats.tracker.try_acquire(frame.class.priority());
                let state = match frame.kind {
                    FrameKind::State => decode::<WorkerState>(&frame)?,
                    given => return Err(SessionError::Unexpected { given, expected: "state" }),
                };
                until = Instant::now() + silence_max;
                if let Some(report) = session.take_state(id, state) {
                    let name = session.name().into();
                    let event = SessionEvent::Reported { name, report: Box::new(report) };
                    let _ = hub.outlet.events.send(event).await;
                }
            }
            // Also without executions: the answer says that the worker is there.
            _ = renewals.tick() => {
                hub.queue(session.name(), ToWorker::Renew(session.interests()));
            }
        }
    }
}
