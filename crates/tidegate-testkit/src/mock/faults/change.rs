use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Injected faults; none by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Faults {
    /// Delay of responses, 0 … 60,000 ms.
    pub added_latency_ms: u64,
    /// Accepts requests and sends no response.
    pub cut: bool,
    /// Closes the listening socket.
    pub dead: bool,
    /// Share of requests that fail with 503, 0 … 1.
    pub failure_rate: f64,
    /// Stops work and the engine.
    pub frozen: bool,
    /// Share of work slots that is available, 0 … 1.
    pub slots_share: f64,
    /// Load reports.
    pub reports: Reports,
    /// Factor of the duration of work and engine steps, 0.01 … 10,000.
    pub slow_factor: f64,
}

/// Load reports in metrics and headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reports {
    /// The actual load.
    #[default]
    Live,
    /// The load at the time when this was set.
    Stale,
    /// Zeros and no KV blocks, like a server that is still loading.
    NotReady,
}

/// Outage of the mock's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mock) struct Outage {
    /// The listening socket is closed.
    pub(in crate::mock) dead: bool,
    /// Requests are accepted and no response is sent.
    pub(in crate::mock) cut: bool,
}

/// Partial change of faults; other fields stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::mock) struct FaultChange {
    added_latency_ms: Option<u64>,
    cut: Option<bool>,
    dead: Option<bool>,
    failure_rate: Option<f64>,
    /// Duration; permanent without it.
    pub(in crate::mock) for_ms: Option<u64>,
    frozen: Option<bool>,
    slots_share: Option<f64>,
    reports: Option<Reports>,
    slow_factor: Option<f64>,
}

// === impl Faults ===

impl Default for Faults {
    fn default() -> Self {
        Self {
            added_latency_ms: 0,
            cut: false,
            dead: false,
            failure_rate: 0.0,
            frozen: false,
            slots_share: 1.0,
            reports: Reports::Live,
            slow_factor: 1.0,
        }
    }
}

// === impl FaultChange ===

impl FaultChange {
    /// Parses and validates a change.
    pub(in crate::mock) fn parse(json: &[u8]) -> Result<Self, String> {
        let change: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        within("added_latency_ms", change.added_latency_ms, 0..=60_000)?;
        within("failure_rate", change.failure_rate, 0.0..=1.0)?;
        within("for_ms", change.for_ms, 1..=3_600_000)?;
        within("slots_share", change.slots_share, 0.0..=1.0)?;
        within("slow_factor", change.slow_factor, 0.01..=10_000.0)?;
        let timed = change.for_ms.is_some();
        if change.dead == Some(true) && !timed {
            return Err("dead: needs for_ms: a dead mock can't be reached to end it".to_owned());
        }
        if change.cut == Some(true) && !timed {
            return Err("cut: needs for_ms: connections are dropped at its end".to_owned());
        }
        if timed && change.names_nothing() {
            return Err("for_ms: names no fault that could end".to_owned());
        }
        Ok(change)
    }

    pub(in crate::mock) fn applied_to(self, faults: Faults) -> Faults {
        Faults {
            added_latency_ms: self.added_latency_ms.unwrap_or(faults.added_latency_ms),
            cut: self.cut.unwrap_or(faults.cut),
            dead: self.dead.unwrap_or(faults.dead),
            failure_rate: self.failure_rate.unwrap_or(faults.failure_rate),
            frozen: self.frozen.unwrap_or(faults.frozen),
            slots_share: self.slots_share.unwrap_or(faults.slots_share),
            reports: self.reports.unwrap_or(faults.reports),
            slow_factor: self.slow_factor.unwrap_or(faults.slow_factor),
        }
    }

    /// This change without the fields that `other` sets.
    pub(in crate::mock) fn without(self, other: &Self) -> Self {
        fn left<T>(own: Option<T>, other: &Option<T>) -> Option<T> {
            own.filter(|_| other.is_none())
        }
        Self {
            added_latency_ms: left(self.added_latency_ms, &other.added_latency_ms),
            cut: left(self.cut, &other.cut),
            dead: left(self.dead, &other.dead),
            failure_rate: left(self.failure_rate, &other.failure_rate),
            for_ms: self.for_ms,
            frozen: left(self.frozen, &other.frozen),
            slots_share: left(self.slots_share, &other.slots_share),
            reports: left(self.reports, &other.reports),
            slow_factor: left(self.slow_factor, &other.slow_factor),
        }
    }

    pub(in crate::mock) fn names_nothing(&self) -> bool {
        Self { for_ms: None, ..*self } == Self::default()
    }
}

fn within<T: PartialOrd + Display>(
    field: &str,
    given: Option<T>,
    allowed: RangeInclusive<T>,
) -> Result<(), String> {
    match given {
        Some(given) if !allowed.contains(&given) => {
            Err(format!("{field}: allowed: {} … {}", allowed.start(), allowed.end()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_typed_checked_and_partial() {
        let first = FaultChange::parse(br#"{"frozen": true, "failure_rate": 0.5}"#).unwrap();
        let then = FaultChange::parse(br#"{"reports": "not_ready", "slow_factor": 8}"#).unwrap();
        let faults = then.applied_to(first.applied_to(Faults::default()));
        let expected = Faults {
            frozen: true,
            failure_rate: 0.5,
            reports: Reports::NotReady,
            slow_factor: 8.0,
            ..Faults::default()
        };
        assert_eq!(faults, expected);
        for (json, says) in [
            (r#"{"froze": true}"#, "froze"),
            (r#"{"failure_rate": 1.5}"#, "0 … 1"),
            (r#"{"failure_rate": -0.1}"#, "0 … 1"),
            (r#"{"slots_share": 1.1}"#, "slots_share: allowed: 0 … 1"),
            (r#"{"slow_factor": 0}"#, "slow_factor: allowed: 0.01 … 10000"),
            (r#"{"added_latency_ms": 60001}"#, "60000"),
            (r#"{"frozen": true, "for_ms": 0}"#, "for_ms: allowed: 1 … 3600000"),
            (r#"{"for_ms": 10}"#, "names no fault"),
            (r#"{"dead": true}"#, "dead: needs for_ms"),
            (r#"{"cut": true}"#, "cut: needs for_ms"),
            (r#"{"reports": "wrong"}"#, "wrong"),
            ("[", "EOF"),
        ] {
            let error = FaultChange::parse(json.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
        assert!(FaultChange::parse(br#"{"dead": true, "cut": true, "for_ms": 5}"#).is_ok());
        assert!(FaultChange::parse(br#"{"cut": false}"#).is_ok());
    }
}
