use super::intake::Intake;
use super::{ProxyError, Rejection};
use crate::gateway::ThreadContext;
use crate::upstream::{LineRefusal, Placed, Tried};
use http::HeaderMap;
use http::header::HeaderName;
use tidegate::MessagePriority;
use tidegate::routing::{Ask, Charge, Pick, RouteError};

/// Names the worker that a request wants, where workers are picked so.
static WORKER: HeaderName = HeaderName::from_static("tidegate-worker");

/// What a request needs of an upstream, as far as its head tells and, where it matters, its body.
#[derive(Debug)]
pub struct Placing {
    model: Option<String>,
    priority: MessagePriority,
    charge: Charge,
    direct: Option<String>,
}

// === impl Placing ===

impl Placing {
    /// Looks at a request that was admitted. Its body is only looked into when it makes a difference which model
    /// it names, its head does not say, and some worker could take it.
    ///
    /// # Errors
    ///
    /// When all are busy whatever its model, or the client breaks off or stalls while its body is looked into.
    pub async fn of(
        thread: &ThreadContext,
        intake: &mut Intake,
        route_model: Option<String>,
        priority: MessagePriority,
    ) -> Result<Self, ProxyError> {
        let config = &thread.shared.config.routing;
        let router = thread.shared.fleet.router();
        let charge = config.charge.of_bytes(intake.length());
        let headers = &intake.parts.headers;
        let direct = match config.pick {
            Pick::Direct => text(headers, &WORKER).map(str::to_owned),
            _ => None,
        };
        let mut placing = Self { model: None, priority, charge, direct };
        if !router.monitor().needs_model() {
            return Ok(placing);
        }
        placing.model = text(headers, &config.model_header).map(str::to_owned).or(route_model);
        if placing.model.is_none() && intake.may_name_a_model() {
            // Whatever its model, nobody could take it: then it need not be known.
            if !thread.shared.config.dry_run && !router.any_room(priority) {
                return Err(placing.refused(router.refusal(&placing.ask(&Tried::default(), false))));
            }
            let stall = thread.shared.config.listen.header_timeout;
            placing.model = intake.find_model(config.model_peek_bytes, stall).await?;
        }
        Ok(placing)
    }

    /// A place at an upstream that was not tried.
    ///
    /// # Errors
    ///
    /// When all are busy, none is there, or all were tried. In a dry run that all are busy is only counted.
    pub fn place(&self, thread: &ThreadContext, tried: &Tried) -> Result<Placed, ProxyError> {
        let fleet = &thread.shared.fleet;
        let ask = self.ask(tried, thread.shared.config.dry_run);
        match fleet.place(&ask, thread.chance.next()) {
            Ok(placed) => Ok(placed),
            Err(error) => {
                let rejection = Rejection::of_route(&error);
                if let (true, Some(rejection)) = (thread.shared.config.dry_run, rejection)
                    && let Some(placed) = fleet.place_anyway(&ask, thread.chance.next())
                {
                    thread.metrics.would_reject(rejection);
                    return Ok(placed);
                }
                Err(self.refused(error))
            }
        }
    }

    /// Waits in the line of the upstream where a place was found.
    ///
    /// # Errors
    ///
    /// When it may not wait there, or waited too long. In a dry run that is only counted.
    pub async fn line_up(
        &self,
        thread: &ThreadContext,
        mut placed: Placed,
    ) -> Result<Placed, (Placed, LineRefusal)> {
        match placed.upstream().line.enter(self.priority).await {
            Ok(turn) => {
                placed.take(turn);
                Ok(placed)
            }
            Err(refusal) if thread.shared.config.dry_run => {
                thread.metrics.would_reject(Rejection::of_line(refusal));
                Ok(placed)
            }
            Err(refusal) => Err((placed, refusal)),
        }
    }

    /// A request that may not wait for this upstream.
    pub fn not_in_line(
        &self,
        thread: &ThreadContext,
        placed: &Placed,
        why: LineRefusal,
    ) -> ProxyError {
        let upstream = placed.upstream().name.clone();
        let retry_after = thread.shared.fleet.router().retry_after(self.model.as_deref());
        ProxyError::Outbox { upstream, why, retry_after }
    }

    fn ask<'a>(&'a self, tried: &'a Tried, dry_run: bool) -> Ask<'a> {
        Ask {
            model: self.model.as_deref(),
            priority: self.priority,
            charge: self.charge,
            direct: self.direct.as_deref(),
            not: tried.ids(),
            dry_run,
        }
    }

    fn refused(&self, error: RouteError) -> ProxyError {
        match error {
            RouteError::Overloaded(overload) => ProxyError::Overloaded(overload),
            RouteError::Exhausted => ProxyError::NoUpstream,
            RouteError::UnknownWorker => {
                ProxyError::UnknownWorker { name: self.direct.clone().unwrap_or_default() }
            }
            none @ RouteError::NoWorkers { .. } => ProxyError::NoWorkers(none),
        }
    }
}

/// Few fields and a name: comparing is cheaper than hashing, on every request.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(key, _)| *key == name)?;
    value.to_str().ok()
}
