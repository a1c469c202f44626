use super::request::{Intake, deadline};
use super::{ProxyError, ThreadProxy};
use crate::gateway::upstream::{Reservation, TriedUpstreams};
use crate::http::admission::Flow;
use crate::http::request::values;
use crate::http::{Rejection, RejectionCause, WaitForecast};
use http::HeaderMap;
use http::header::HeaderName;
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::routing::{AcquireError, Ask, Charge, Overload, Pick, RouteError};

/// Names the upstream that a request wants, where upstreams are picked so.
static UPSTREAM: HeaderName = HeaderName::from_static("tidegate-upstream");

/// The selection of an upstream for a request, by its head and, where it matters, its body.
#[derive(Debug)]
pub struct Selection {
    model: Option<String>,
    priority: MessagePriority,
    flow: Flow,
    charge: Charge,
    direct: Option<String>,
    wait_max: Duration,
}

// === impl Selection ===

impl Selection {
    /// The selection for an admitted request. Its body is only read when it makes a difference which model
    /// it names, its head does not say, and some upstream could take it.
    ///
    /// # Errors
    ///
    /// When all are busy whatever its model, or the client breaks off or stalls while its body is looked into.
    pub async fn of(
        thread: &ThreadProxy,
        intake: &mut Intake,
        route_model: Option<String>,
        (priority, flow): (MessagePriority, Flow),
    ) -> Result<Self, ProxyError> {
        let config = &thread.config.routing;
        let router = thread.fleet.router();
        let charge = config.charge.of_bytes(intake.length());
        let headers = &intake.parts.headers;
        let direct = match config.pick {
            Pick::Direct => text(headers, &UPSTREAM).map(str::to_owned),
            _ => None,
        };
        let wait_max = deadline::of(headers)
            .map_or(thread.config.queue.wait_max, |left| left.min(thread.config.queue.wait_max));
        let mut selection = Self { model: None, priority, flow, charge, direct, wait_max };
        if !router.monitor().needs_model() {
            return Ok(selection);
        }
        selection.model = text(headers, &config.model_header).map(str::to_owned).or(route_model);
        if selection.model.is_none() && intake.may_name_a_model() {
            // Whatever its model, nobody could take it and it may not wait: then it need not be known.
            let waits = thread.config.queue.size > 0;
            if !thread.config.dry_run && !waits && !router.any_room() {
                return Err(selection.refused(
                    thread,
                    router.refusal(&selection.ask(&TriedUpstreams::default(), false)),
                ));
            }
            let stall = thread.config.listen.header_timeout;
            selection.model = intake.find_model(config.model_peek_bytes, stall).await?;
        }
        Ok(selection)
    }

    /// Reserves an upstream that was not tried, after a wait in the queue where that is needed and allowed.
    ///
    /// # Errors
    ///
    /// When all are busy and it may not wait or waited in vain, none is there, or all were tried. In a dry run
    /// that all are busy is only counted.
    ///
    /// # Cancel safety
    ///
    /// A request that is dropped while it waits leaves the queue at once.
    pub async fn acquire(
        &self,
        thread: &ThreadProxy,
        tried: &TriedUpstreams,
    ) -> Result<Reservation, ProxyError> {
        let ask = self.ask(tried, thread.config.dry_run);
        if thread.config.dry_run {
            return self.reserve_anyway(thread, &ask);
        }
        let error = match thread.fleet.acquire(&ask, self.wait_max).await {
            Ok(reservation) => return Ok(reservation),
            Err(error) => error,
        };
        Err(match error {
            AcquireError::Route(error) => self.refused(thread, error),
            AcquireError::Busy { overload, position, wait } => {
                let queue =
                    (thread.config.queue.size > 0).then_some(WaitForecast { position, wait });
                busy(overload, queue)
            }
            AcquireError::Displaced { retry_after } => {
                Rejection::new(RejectionCause::Displaced, retry_after).into()
            }
            AcquireError::Expired { waited, retry_after } => {
                Rejection::new(RejectionCause::QueueTimeout(waited), retry_after).into()
            }
        })
    }

    /// Takes the request's part of the reserved upstream's share of the gateway.
    ///
    /// # Errors
    ///
    /// When the upstream's requests use its whole share. In a dry run that is only counted.
    pub fn take_share(
        &self,
        thread: &ThreadProxy,
        reservation: &mut Reservation,
    ) -> Result<(), Rejection> {
        let cause = match reservation.upstream().share().try_acquire(self.priority) {
            Ok(share) => {
                reservation.take_share(share);
                return Ok(());
            }
            Err(cause) => cause,
        };
        let retry_after = thread.fleet.router().retry_after(self.model.as_deref());
        let mut rejection = Rejection::new(cause, retry_after);
        if thread.config.dry_run {
            thread.metrics.would_reject(rejection.reason());
            return Ok(());
        }
        rejection.upstream = Some(reservation.upstream().name().into());
        Err(rejection)
    }

    /// Reserves an upstream for a dry run, where limits and thresholds only count what they would have held.
    fn reserve_anyway(
        &self,
        thread: &ThreadProxy,
        ask: &Ask<'_>,
    ) -> Result<Reservation, ProxyError> {
        let fleet = &thread.fleet;
        let error = match fleet.reserve(ask) {
            Ok(reservation) => return Ok(reservation),
            Err(error) => self.refused(thread, error),
        };
        if let ProxyError::Rejected(rejection) = &error
            && let Some(reservation) = fleet.reserve_beyond_thresholds(ask)
        {
            thread.metrics.would_reject(rejection.reason());
            return Ok(reservation);
        }
        Err(error)
    }

    fn ask<'a>(&'a self, tried: &'a TriedUpstreams, dry_run: bool) -> Ask<'a> {
        Ask {
            model: self.model.as_deref(),
            priority: self.priority,
            flow: self.flow.id,
            weight: self.flow.weight,
            charge: self.charge,
            direct: self.direct.as_deref(),
            not: tried.ids(),
            dry_run,
        }
    }

    fn refused(&self, thread: &ThreadProxy, error: RouteError) -> ProxyError {
        match error {
            RouteError::Overloaded(overload) => busy(overload, None),
            RouteError::Exhausted => ProxyError::NoUpstream,
            RouteError::UnknownUpstream => {
                ProxyError::UnknownUpstream { name: self.direct.clone().unwrap_or_default() }
            }
            RouteError::NoUpstreams { total, starting } => {
                let cause = RejectionCause::NoUpstreams { total, starting };
                Rejection::new(cause, thread.config.proxy.health_interval).into()
            }
        }
    }
}

fn busy(overload: Overload, queue: Option<WaitForecast>) -> ProxyError {
    let Overload { busy, total, threshold, retry_after } = overload;
    let cause = RejectionCause::AllBusy { busy, total, threshold, queue };
    Rejection::new(cause, retry_after).into()
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let value = values(headers, name).next()?;
    value.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}
