use serde::{Deserialize, Serialize};

/// The longest that answers can be put off.
const ADDED_LATENCY_MS_MAX: u64 = 60_000;

/// What goes wrong at present. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Faults {
    /// How much later answers begin, 0 … 60,000 ms.
    pub added_latency_ms: u64,
    /// Whether the engine stands still.
    pub frozen: bool,
    /// What the mock says of its load.
    pub reports: Reports,
    /// Which part of the requests fails with 503, 0 … 1.
    pub failure_rate: f64,
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
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultChange {
    added_latency_ms: Option<u64>,
    frozen: Option<bool>,
    reports: Option<Reports>,
    failure_rate: Option<f64>,
}

// === impl FaultChange ===

impl FaultChange {
    /// Reads a change, or says what is wrong with it.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let change: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if change.added_latency_ms.is_some_and(|ms| ms > ADDED_LATENCY_MS_MAX) {
            return Err("added_latency_ms: allowed: 0 … 60000".to_owned());
        }
        if change.failure_rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
            return Err("failure_rate: allowed: 0 … 1".to_owned());
        }
        Ok(change)
    }

    pub(super) fn applied_to(self, faults: Faults) -> Faults {
        Faults {
            added_latency_ms: self.added_latency_ms.unwrap_or(faults.added_latency_ms),
            frozen: self.frozen.unwrap_or(faults.frozen),
            reports: self.reports.unwrap_or(faults.reports),
            failure_rate: self.failure_rate.unwrap_or(faults.failure_rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_typed_checked_and_partial() {
        let first = FaultChange::parse(br#"{"frozen": true, "failure_rate": 0.5}"#).unwrap();
        let then = FaultChange::parse(br#"{"reports": "not_ready"}"#).unwrap();
        let faults = then.applied_to(first.applied_to(Faults::default()));
        let expected = Faults {
            frozen: true,
            failure_rate: 0.5,
            reports: Reports::NotReady,
            ..Faults::default()
        };
        assert_eq!(faults, expected);
        for (json, says) in [
            (r#"{"froze": true}"#, "froze"),
            (r#"{"failure_rate": 1.5}"#, "0 … 1"),
            (r#"{"failure_rate": -0.1}"#, "0 … 1"),
            (r#"{"added_latency_ms": 60001}"#, "60000"),
            (r#"{"reports": "wrong"}"#, "wrong"),
            ("[", "EOF"),
        ] {
            let error = FaultChange::parse(json.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
