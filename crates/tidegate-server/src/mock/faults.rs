use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// What goes wrong at present. Nothing by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Faults {
    /// How much later answers begin, 0 … 60,000 ms.
    pub added_latency_ms: u64,
    /// Whether requests are taken and nothing is answered.
    pub cut: bool,
    /// Whether nobody listens.
    pub dead: bool,
    /// Which part of the requests fails with 503, 0 … 1.
    pub failure_rate: f64,
    /// Whether work and the engine stand still.
    pub frozen: bool,
    /// Which part of the places for work is left, 0 … 1.
    pub places_share: f64,
    /// What the mock says of its load.
    pub reports: Reports,
    /// How many times as long work and the engine's steps take, 0.01 … 10,000.
    pub slow_factor: f64,
}

/// What a mock says of its load, in metrics and in headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reports {
    /// What is true.
    #[default]
    Live,
    /// What was true when this was set.
    Stale,
    /// Zeros, and no KV block at all, as a server that is still loading.
    NotReady,
}

/// A change of faults. What it does not name stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultChange {
    added_latency_ms: Option<u64>,
    cut: Option<bool>,
    dead: Option<bool>,
    failure_rate: Option<f64>,
    /// After so long it is over; never without it.
    pub(super) for_ms: Option<u64>,
    frozen: Option<bool>,
    places_share: Option<f64>,
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
            places_share: 1.0,
            reports: Reports::Live,
            slow_factor: 1.0,
        }
    }
}

// === impl FaultChange ===

impl FaultChange {
    /// Reads a change, or says what is wrong with it.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let change: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        within("added_latency_ms", change.added_latency_ms, 0..=60_000)?;
        within("failure_rate", change.failure_rate, 0.0..=1.0)?;
        within("for_ms", change.for_ms, 1..=3_600_000)?;
        within("places_share", change.places_share, 0.0..=1.0)?;
        within("slow_factor", change.slow_factor, 0.01..=10_000.0)?;
        let timed = change.for_ms.is_some();
        if change.dead == Some(true) && !timed {
            return Err("dead: needs for_ms: nobody could reach it to end it".to_owned());
        }
        if change.cut == Some(true) && !timed {
            return Err("cut: needs for_ms: what was taken is dropped when it is over".to_owned());
        }
        if timed && change.names_nothing() {
            return Err("for_ms: names no fault that could end".to_owned());
        }
        Ok(change)
    }

    pub(super) fn applied_to(self, faults: Faults) -> Faults {
        Faults {
            added_latency_ms: self.added_latency_ms.unwrap_or(faults.added_latency_ms),
            cut: self.cut.unwrap_or(faults.cut),
            dead: self.dead.unwrap_or(faults.dead),
            failure_rate: self.failure_rate.unwrap_or(faults.failure_rate),
            frozen: self.frozen.unwrap_or(faults.frozen),
            places_share: self.places_share.unwrap_or(faults.places_share),
            reports: self.reports.unwrap_or(faults.reports),
            slow_factor: self.slow_factor.unwrap_or(faults.slow_factor),
        }
    }

    /// What is left of it when `other` has the last word on all that it names.
    pub(super) fn without(self, other: &Self) -> Self {
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
            places_share: left(self.places_share, &other.places_share),
            reports: left(self.reports, &other.reports),
            slow_factor: left(self.slow_factor, &other.slow_factor),
        }
    }

    pub(super) fn names_nothing(&self) -> bool {
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
            (r#"{"places_share": 1.1}"#, "places_share: allowed: 0 … 1"),
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
