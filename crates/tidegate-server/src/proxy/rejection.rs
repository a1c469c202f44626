use super::ProxyError;
use crate::upstream::LineRefusal;
use tidegate::routing::RouteError;
use tidegate::{Reason, Refusal};

/// Why a request was refused by a limit of ours, before any of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The gateway is at its global limit.
    GlobalLimit,
    /// The priority is at its own.
    PriorityLimit,
    /// Every worker is busy.
    AllBusy,
    /// No worker is there, or none is ready.
    NoWorkers,
    /// As many wait for the upstream as may.
    OutboxFull,
    /// It waited for the upstream for too long.
    OutboxWait,
    /// The upstream's requests hold as much of the gateway as they may.
    UpstreamShare,
    /// The client's requests hold as much of the gateway as they may.
    ClientShare,
}

// === impl Rejection ===

impl Rejection {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::GlobalLimit,
        Self::PriorityLimit,
        Self::AllBusy,
        Self::NoWorkers,
        Self::OutboxFull,
        Self::OutboxWait,
        Self::UpstreamShare,
        Self::ClientShare,
    ];

    /// The name used in labels, logs and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GlobalLimit => "global_limit",
            Self::PriorityLimit => "priority_limit",
            Self::AllBusy => "all_busy",
            Self::NoWorkers => "no_workers",
            Self::OutboxFull => "outbox_full",
            Self::OutboxWait => "outbox_wait",
            Self::UpstreamShare => "upstream_share",
            Self::ClientShare => "client_share",
        }
    }

    /// This reason's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What an admission limit refused.
    #[must_use]
    pub fn of_admission(refusal: Refusal) -> Self {
        match refusal.reason {
            Reason::GlobalLimit => Self::GlobalLimit,
            Reason::PriorityLimit => Self::PriorityLimit,
        }
    }

    /// What the router refused, if it is for want of room or workers.
    #[must_use]
    pub fn of_route(error: &RouteError) -> Option<Self> {
        match error {
            RouteError::Overloaded(_) => Some(Self::AllBusy),
            RouteError::NoWorkers { .. } => Some(Self::NoWorkers),
            RouteError::Exhausted | RouteError::UnknownWorker => None,
        }
    }

    /// What an upstream's outbox refused.
    #[must_use]
    pub fn of_line(refusal: LineRefusal) -> Self {
        match refusal {
            LineRefusal::Share => Self::UpstreamShare,
            LineRefusal::Full { .. } | LineRefusal::Displaced => Self::OutboxFull,
            LineRefusal::TooLong(_) => Self::OutboxWait,
        }
    }

    /// A request's failure, if it is a refusal.
    #[must_use]
    pub fn of_error(error: &ProxyError) -> Option<Self> {
        match error {
            ProxyError::Overloaded(_) => Some(Self::AllBusy),
            ProxyError::NoWorkers(_) => Some(Self::NoWorkers),
            ProxyError::Outbox { why, .. } => Some(Self::of_line(*why)),
            _ => None,
        }
    }
}
