use super::Cluster;
use super::members_error::MembersError;
use super::membership::{MemberState, MemberView, Membership, PacketCounts};
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::request::is_cross_origin;
use crate::http::{
    Answer, Caller, Exposition, Extension, HistogramSnapshot, Port, ResponseBody, response,
};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde::Serialize;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use tidegate::membership::MemberRole;

const MEMBERS: &str = "/v1/members";

/// Load of a member, as the node that was asked knows it from its sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemberLoad {
    /// Executions that hold a slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<u32>,
    /// Slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Backpressure level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
}

/// Workers of this node: their loads, and their drains.
pub trait MemberWorkers: Send + Sync {
    /// Loads by name; that of this node under its own.
    fn loads(&self, own: &str) -> BTreeMap<String, MemberLoad>;

    /// True for a worker that this node has had a session with since its start.
    fn knows(&self, worker: &str) -> bool;

    /// Stops or resumes the dispatch to a worker.
    fn set_draining<'a>(
        &'a self,
        worker: &'a str,
        draining: bool,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// Members on the admin port: `/v1/members`, drains, and their series.
pub struct MembersExtension {
    cluster: Arc<Cluster>,
    membership: Arc<Membership>,
    /// On a manager with a port for workers.
    workers: Option<Box<dyn MemberWorkers>>,
}

#[derive(Serialize)]
struct MemberList {
    /// The node that was asked.
    node: String,
    cell: String,
    members: Vec<Listed>,
    packets: PacketCounts,
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    view: MemberView,
    #[serde(flatten)]
    load: MemberLoad,
}

/// Path of the members.
#[derive(Debug, PartialEq, Eq)]
enum Route<'a> {
    All,
    Drain(&'a str),
    Undrain(&'a str),
    Unknown,
}

// === impl MembersExtension ===

impl MembersExtension {
    /// The members of a cluster, and the workers of this node if it is a manager.
    #[must_use]
    pub fn new(
        cluster: Arc<Cluster>,
        membership: Arc<Membership>,
        workers: Option<Box<dyn MemberWorkers>>,
    ) -> Self {
        Self { cluster, membership, workers }
    }

    fn list(&self) -> MemberList {
        let node = self.cluster.node();
        let loads = self.workers.as_ref().map(|workers| workers.loads(&node.node));
        let mut loads = loads.unwrap_or_default();
        let listed = |view: MemberView| {
            let load = loads.remove(&view.node).unwrap_or_default();
            Listed { view, load }
        };
        MemberList {
            node: node.node.clone(),
            cell: node.cell.clone(),
            members: self.membership.members().into_iter().map(listed).collect(),
            packets: self.membership.counts(),
        }
    }

    async fn follow(
        &self,
        method: &Method,
        route: Route<'_>,
    ) -> Result<Response<ResponseBody>, MembersError> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match route {
            Route::All if reads => Ok(response::json(&self.list())),
            Route::All => Err(MembersError::Method("GET, HEAD")),
            Route::Drain(_) | Route::Undrain(_) if *method != Method::POST => {
                Err(MembersError::Method("POST"))
            }
            Route::Drain(node) => self.drain(node, true).await,
            Route::Undrain(node) => self.drain(node, false).await,
            Route::Unknown => Err(MembersError::UnknownPath),
        }
    }

    /// Stops or resumes the dispatch to a worker: persisted, in force here, and then spread.
    async fn drain(
        &self,
        node: &str,
        draining: bool,
    ) -> Result<Response<ResponseBody>, MembersError> {
        let Some(workers) = &self.workers else { return Err(MembersError::NoManager) };
        let members = self.membership.members();
        let member = members.iter().find(|member| member.node == node);
        let role = member.and_then(|member| member.role.parse().ok());
        match role {
            None => return Err(MembersError::UnknownNode(node.chars().take(100).collect())),
            Some(MemberRole::Worker) => {}
            Some(role) => return Err(MembersError::NoWorker { node: node.to_owned(), role }),
        }
        // A drain of another manager's worker would be shown by every member, and stop nothing.
        if !workers.knows(node) && !self.cluster.drains().iter().any(|drain| drain.node == node) {
            let manager = self.cluster.node().node.clone();
            return Err(MembersError::NoSession { node: node.to_owned(), manager });
        }
        let note = self.cluster.set_drain(node, draining)?;
        workers.set_draining(node, draining).await;
        tracing::info!(node, draining, "drain set");
        let answer = response::json(&note);
        self.membership.tell_drain(note);
        Ok(answer)
    }
}

impl Extension for MembersExtension {
    fn owns(&self, path: &str) -> bool {
        path.strip_prefix(MEMBERS).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    fn answer<'a>(&'a self, request: Request<Incoming>, caller: Caller<'a>) -> Answer<'a> {
        Box::pin(async move {
            let format = ResponseFormat::of(&request);
            let (parts, body) = request.into_parts();
            drop(body);
            let request = Request::from_parts(parts, ());
            let Port::Operators = caller.port else {
                return format.fit(MembersError::OperatorsPort.respond(format), Unread::Some);
            };
            if let Err(refused) = caller.admission.classifier().require_operator(&request) {
                return format.fit(refused.respond(format), Unread::Some);
            }
            let (parts, ()) = request.into_parts();
            let changes = !matches!(parts.method, Method::GET | Method::HEAD);
            let answer = match changes && is_cross_origin(&parts) {
                true => Err(MembersError::CrossOrigin),
                false => self.follow(&parts.method, Route::of(parts.uri.path())).await,
            };
            let unread = if changes { Unread::Some } else { Unread::None };
            format.fit(answer.unwrap_or_else(|error| error.respond(format)), unread)
        })
    }

    fn write_metrics(&self, out: &mut Exposition) {
        let members = self.membership.members();
        let mut series = out.gauge("tidegate_members", "Members of the cell, by role and state.");
        for role in MemberRole::ALL {
            for (state, name) in [
                (MemberState::Alive, "alive"),
                (MemberState::Suspect, "suspect"),
                (MemberState::Down, "down"),
                (MemberState::Left, "left"),
            ] {
                let counted =
                    members.iter().filter(|it| it.role == role.name() && it.state == state);
                series.with(&[("role", role.name()), ("state", name)], counted.count());
            }
        }
        let draining = members.iter().filter(|member| member.draining).count();
        out.gauge("tidegate_members_draining", "Members that are drained.").value(draining);
        self.write_packets(out);
        if let Some(desk) = self.cluster.desk() {
            let (granted, refused) = desk.counts();
            let mut joins = out
                .counter("tidegate_cluster_joins_total", "Nodes that asked to join, by outcome.");
            joins.with(&[("outcome", "granted")], granted);
            joins.with(&[("outcome", "refused")], refused);
        }
    }
}

impl MembersExtension {
    fn write_packets(&self, out: &mut Exposition) {
        let counts = self.membership.counts();
        let name = "tidegate_cluster_packets_total";
        let mut packets = out.counter(name, "UDP packets of membership, by what became of them.");
        for (outcome, count) in [
            ("sent", counts.sent),
            ("unsent", counts.unsent),
            ("accepted", counts.accepted),
            ("garbage", counts.garbage),
            ("version", counts.version),
            ("unknown_key", counts.unknown_key),
            ("forged", counts.forged),
            ("replayed", counts.replayed),
            ("malformed", counts.malformed),
        ] {
            packets.with(&[("outcome", outcome)], count);
        }
        let name = "tidegate_cluster_probes_total";
        let mut probes = out.counter(name, "Direct probes of members, sent and answered.");
        probes.with(&[("outcome", "sent")], counts.probes_sent);
        probes.with(&[("outcome", "answered")], counts.probes_answered);
        let name = "tidegate_cluster_probe_seconds";
        let mut times = out.histogram(name, "Round trips of probes that were answered directly.");
        let mut round_trips = HistogramSnapshot::default();
        self.membership.meters().round_trips.add_to(&mut round_trips);
        round_trips.write(&mut times, &[]);
        let name = "tidegate_cluster_suspicions_total";
        out.counter(name, "Members that became suspect in the view of this node.")
            .value(counts.suspicions);
        let name = "tidegate_cluster_stalls_total";
        out.counter(name, "Stalls of this process after which its timers were armed again.")
            .value(counts.stalls);
        let name = "tidegate_cluster_names_contested_total";
        out.counter(name, "Claims of the name of this node by another, long after its start.")
            .value(counts.names_contested);
    }
}

// === impl Route ===

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        let below = path.strip_prefix(MEMBERS).unwrap_or_default();
        match below.strip_prefix('/').and_then(|below| below.split_once('/')) {
            None if below.is_empty() => Self::All,
            Some((node, "drain")) => Self::Drain(node),
            Some((node, "undrain")) => Self::Undrain(node),
            _ => Self::Unknown,
        }
    }
}
