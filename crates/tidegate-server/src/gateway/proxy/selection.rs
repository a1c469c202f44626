use super::request::Intake;
use super::{ProxyError, ThreadProxy};
use crate::gateway::upstream::{Reservation, TriedUpstreams};
use crate::http::{Rejection, RejectionCause};
use http::HeaderMap;
use http::header::HeaderName;
use tidegate::MessagePriority;
use tidegate::routing::{Ask, Charge, Overload, Pick, RouteError};

/// Names the upstream that a request wants, where upstreams are picked so.
static UPSTREAM: HeaderName = HeaderName::from_static("tidegate-upstream");

/// The selection of an upstream for a request, by its head and, where it matters, its body.
#[derive(Debug)]
pub struct Selection {
    model: Option<String>,
    priority: MessagePriority,
    charge: Charge,
    direct: Option<String>,
}

// === impl Placing ===

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
        priority: MessagePriority,
    ) -> Result<Self, ProxyError> {
        let config = &thread.config.routing;
        let router = thread.fleet.router();
        let charge = config.charge.of_bytes(intake.length());
        let headers = &intake.parts.headers;
        let direct = match config.pick {
            Pick::Direct => text(headers, &UPSTREAM).map(str::to_owned),
            _ => None,
        };
        let mut selection = Self { model: None, priority, charge, direct };
        if !router.monitor().needs_model() {
            return Ok(selection);
        }
        selection.model = text(headers, &config.model_header).map(str::to_owned).or(route_model);
        if selection.model.is_none() && intake.may_name_a_model() {
            // Whatever its model, nobody could take it: then it need not be known.
            if !thread.config.dry_run && !router.any_room(priority) {
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

    /// Reserves an upstream that was not tried.
    ///
    /// # Errors
    ///
    /// When all are busy, none is there, or all were tried. In a dry run that all are busy is only counted.
    pub fn reserve(
        &self,
        thread: &ThreadProxy,
        tried: &TriedUpstreams,
    ) -> Result<Reservation, ProxyError> {
        let fleet = &thread.fleet;
        let ask = self.ask(tried, thread.config.dry_run);
        match fleet.reserve(&ask) {
            Ok(reservation) => Ok(reservation),
            Err(error) => {
                let error = self.refused(thread, error);
                if let (true, ProxyError::Rejected(rejection)) = (thread.config.dry_run, &error)
                    && let Some(reservation) = fleet.reserve_beyond_thresholds(&ask)
                {
                    thread.metrics.would_reject(rejection.reason());
                    return Ok(reservation);
                }
                Err(error)
            }
        }
    }

    /// Waits in the queue of the reserved upstream.
    ///
    /// # Errors
    ///
    /// When it may not wait there, or waited too long. In a dry run that is only counted.
    pub async fn wait_in_queue(
        &self,
        thread: &ThreadProxy,
        mut reservation: Reservation,
    ) -> Result<Reservation, (Reservation, Rejection)> {
        match reservation.upstream().queue().enter(self.priority).await {
            Ok(turn) => {
                reservation.take(turn);
                Ok(reservation)
            }
            Err(cause) => {
                let retry_after = thread.fleet.router().retry_after(self.model.as_deref());
                let mut rejection = Rejection::new(cause, retry_after);
                if thread.config.dry_run {
                    thread.metrics.would_reject(rejection.reason());
                    return Ok(reservation);
                }
                rejection.upstream = Some(reservation.upstream().name().into());
                Err((reservation, rejection))
            }
        }
    }

    fn ask<'a>(&'a self, tried: &'a TriedUpstreams, dry_run: bool) -> Ask<'a> {
        Ask {
            model: self.model.as_deref(),
            priority: self.priority,
            charge: self.charge,
            direct: self.direct.as_deref(),
            not: tried.ids(),
            dry_run,
        }
    }

    fn refused(&self, thread: &ThreadProxy, error: RouteError) -> ProxyError {
        match error {
            RouteError::Overloaded(Overload { busy, total, threshold, retry_after }) => {
                let cause = RejectionCause::AllBusy { busy, total, threshold };
                Rejection::new(cause, retry_after).into()
            }
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

/// Few fields and a name: comparing is cheaper than hashing, on every request.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(key, _)| *key == name)?;
    value.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}
