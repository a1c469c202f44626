use super::{ConnectError, Tried};
use crate::config::{Scheme, UpstreamTarget};
use http::uri::Authority;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// All upstreams, and the choice among them.
#[derive(Debug)]
pub struct Fleet {
    upstreams: Vec<Arc<Upstream>>,
}

/// One server behind the gateway, as all threads see it.
#[derive(Debug)]
pub struct Upstream {
    /// Its place in the fleet.
    pub index: usize,
    /// `host:port`, as labels and answers show it.
    pub name: String,
    /// What is spoken with it.
    pub scheme: Scheme,
    /// Where its name is looked up.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For the `:authority` or, when so configured, the `Host` of what is sent to it.
    pub authority: Authority,
    up: AtomicBool,
    in_flight: AtomicUsize,
    sent: AtomicU64,
    failed: AtomicU64,
}

/// One request on its way to an upstream; counts until it is dropped.
#[derive(Debug)]
pub struct InFlight {
    upstream: Arc<Upstream>,
}

/// A snapshot of one upstream.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamStats {
    /// `host:port`.
    pub name: String,
    /// False from a failed connect until the next one that works.
    pub up: bool,
    /// Requests with it now.
    pub in_flight: usize,
    /// Requests sent to it since the start.
    pub sent: u64,
    /// Requests to it that failed since the start: no connection, a reset, a timeout.
    pub failed: u64,
}

// === impl Fleet ===

impl Fleet {
    /// The fleet of these targets, all taken to be up until shown otherwise.
    ///
    /// # Errors
    ///
    /// The target whose host can't stand in a URL.
    pub fn new(targets: &[UpstreamTarget]) -> Result<Self, http::uri::InvalidUri> {
        let upstreams = targets
            .iter()
            .enumerate()
            .map(|(index, target)| Upstream::new(index, target).map(Arc::new))
            .collect::<Result<_, _>>()?;
        Ok(Self { upstreams })
    }

    /// Every upstream, in the order of the configuration.
    #[must_use]
    pub fn all(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    /// Whether any upstream is up.
    #[must_use]
    pub fn any_up(&self) -> bool {
        self.upstreams.iter().any(|upstream| upstream.is_up())
    }

    /// The less busy of two upstreams drawn by `chance`, among those that are up and not `tried`.
    ///
    /// When none is up, one that is down and not tried is returned all the same: an honest failure from it
    /// is worth more than a guess, and its recovery is noticed at once. `None` when all were tried.
    #[must_use]
    pub fn pick(&self, chance: u64, tried: &Tried) -> Option<&Arc<Upstream>> {
        let up = |upstream: &&Arc<Upstream>| upstream.is_up() && !tried.contains(upstream.index);
        let untried = |upstream: &&Arc<Upstream>| !tried.contains(upstream.index);
        self.less_busy_of_two(chance, up).or_else(|| self.less_busy_of_two(chance, untried))
    }

    fn less_busy_of_two(
        &self,
        chance: u64,
        eligible: impl Fn(&&Arc<Upstream>) -> bool,
    ) -> Option<&Arc<Upstream>> {
        let candidates = self.upstreams.iter().filter(&eligible).count();
        let nth = |n: usize| self.upstreams.iter().filter(&eligible).nth(n);
        match candidates {
            0 => None,
            1 => nth(0),
            _ => {
                let first = chance as u32 as usize % candidates;
                // Never the same twice: an offset of 1 … candidates − 1.
                let offset = 1 + (chance >> 32) as usize % (candidates - 1);
                let (a, b) = (nth(first)?, nth((first + offset) % candidates)?);
                Some(if a.in_flight() <= b.in_flight() { a } else { b })
            }
        }
    }
}

// === impl Upstream ===

impl Upstream {
    fn new(index: usize, target: &UpstreamTarget) -> Result<Self, http::uri::InvalidUri> {
        Ok(Self {
            index,
            name: target.name.clone(),
            scheme: target.scheme,
            host: target.host.clone(),
            port: target.port,
            authority: target.name.parse()?,
            up: AtomicBool::new(true),
            in_flight: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        })
    }

    /// False from a failed connect until the next one that works.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Records whether a connection could be made, and logs it when it is news.
    pub fn note(&self, failure: Option<&ConnectError>) {
        let up = failure.is_none();
        if self.up.swap(up, Ordering::Relaxed) == up {
            return;
        }
        match failure {
            None => tracing::info!(upstream = %self.name, "upstream is up"),
            Some(error) => tracing::warn!(upstream = %self.name, %error, "upstream is down"),
        }
    }

    /// Requests with it now.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Counts a request that is about to be sent.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(1, Ordering::Relaxed);
        InFlight { upstream: Arc::clone(self) }
    }

    /// Counts a request that failed.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// What there is to know of it.
    #[must_use]
    pub fn stats(&self) -> UpstreamStats {
        UpstreamStats {
            name: self.name.clone(),
            up: self.is_up(),
            in_flight: self.in_flight(),
            sent: self.sent.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Where the request is.
    #[must_use]
    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.upstream.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn fleet(count: u16) -> Fleet {
        let targets: Vec<_> = (0..count)
            .map(|index| UpstreamTarget {
                name: format!("127.0.0.1:{}", 9000 + index),
                scheme: Scheme::Http,
                host: "127.0.0.1".to_owned(),
                port: 9000 + index,
            })
            .collect();
        Fleet::new(&targets).unwrap()
    }

    const REFUSED: ConnectError = ConnectError::Timeout(Duration::ZERO);

    /// Enough draws to reach every pair of a small fleet.
    fn draws() -> impl Iterator<Item = u64> {
        (0..64u64).map(|n| n | (n / 8) << 32)
    }

    #[test]
    fn the_less_busy_of_two_is_picked() {
        let fleet = fleet(2);
        let _busy = fleet.all()[0].enter();
        for chance in draws() {
            assert_eq!(fleet.pick(chance, &Tried::default()).unwrap().index, 1);
        }
    }

    #[test]
    fn every_upstream_is_reached_when_all_are_idle() {
        let fleet = fleet(5);
        let mut seen = [false; 5];
        for chance in draws() {
            seen[fleet.pick(chance, &Tried::default()).unwrap().index] = true;
        }
        assert_eq!(seen, [true; 5]);
    }

    #[test]
    fn what_is_down_or_was_tried_is_passed_over() {
        let fleet = fleet(3);
        fleet.all()[0].note(Some(&REFUSED));
        let mut tried = Tried::default();
        tried.insert(1);
        for chance in draws() {
            assert_eq!(fleet.pick(chance, &tried).unwrap().index, 2);
        }
    }

    #[test]
    fn when_all_are_down_one_is_still_tried_and_then_no_more() {
        let fleet = fleet(1);
        fleet.all()[0].note(Some(&REFUSED));
        let mut tried = Tried::default();
        assert_eq!(fleet.pick(7, &tried).unwrap().index, 0);
        tried.insert(0);
        assert!(fleet.pick(7, &tried).is_none());
    }

    #[test]
    fn in_flight_balances_when_requests_end() {
        let fleet = fleet(1);
        let upstream = &fleet.all()[0];
        let (one, two) = (upstream.enter(), upstream.enter());
        assert_eq!(upstream.in_flight(), 2);
        drop(one);
        drop(two);
        assert_eq!((upstream.in_flight(), upstream.stats().sent), (0, 2));
    }
}
