use super::encoding::encode;
use super::error::FormatError;
use super::in_flight::InFlight;
use super::{FORMAT, VERSION};
use crate::admission::{PriorityLimits, Sharing};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The first line: the limits in force when the recording began.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The version of the gateway.
    pub gateway: String,
    /// The begin of the recording, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The admission limits.
    pub limits: PriorityLimits,
    /// The use of limits beyond a priority's own.
    pub sharing: Sharing,
    /// True if limits only count what they would refuse.
    pub dry_run: bool,
    /// Requests in flight at the begin.
    pub in_flight: InFlight,
}

/// A header as it is written.
#[derive(Serialize, Deserialize)]
struct HeaderLine<'a> {
    format: Cow<'a, str>,
    version: u32,
    #[serde(default)]
    gateway: Cow<'a, str>,
    #[serde(default)]
    started_unix_ms: u64,
    limits: LimitsField,
    sharing: Sharing,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    in_flight: InFlight,
}

#[derive(Serialize, Deserialize)]
struct LimitsField {
    global: u16,
    high: u16,
    normal: u16,
    low: u16,
    critical_reserve: u16,
}

// === impl Header ===

impl Header {
    /// Appends the header as one line.
    pub fn encode(&self, lines: &mut Vec<u8>) {
        let PriorityLimits { high, normal, low, global_limit: global, critical_reserve } =
            self.limits;
        let line = HeaderLine {
            format: FORMAT.into(),
            version: VERSION,
            gateway: self.gateway.as_str().into(),
            started_unix_ms: self.started_unix_ms,
            limits: LimitsField { global, high, normal, low, critical_reserve },
            sharing: self.sharing,
            dry_run: self.dry_run,
            in_flight: self.in_flight,
        };
        encode(&line, lines);
    }

    /// Reads the first line of a recording.
    ///
    /// # Errors
    ///
    /// When it is not the header of a recording, or of a version that is unknown.
    pub fn decode(line: &[u8]) -> Result<Self, FormatError> {
        let other = |why: &dyn std::fmt::Display| {
            let what = "not a recording of decisions, as `tidegate drill --record` writes";
            FormatError::new(format!("{what}: {why}"))
        };
        let header: HeaderLine<'_> = serde_json::from_slice(line).map_err(|error| other(&error))?;
        if header.format != FORMAT {
            return Err(other(&format_args!("its format is {:?}", header.format)));
        }
        if header.version != VERSION {
            return Err(FormatError::new(format!(
                "version {} of the format is unknown: only version {VERSION} can be read",
                header.version
            )));
        }
        let LimitsField { global, high, normal, low, critical_reserve } = header.limits;
        Ok(Self {
            gateway: header.gateway.into_owned(),
            started_unix_ms: header.started_unix_ms,
            limits: PriorityLimits { high, normal, low, global_limit: global, critical_reserve },
            sharing: header.sharing,
            dry_run: header.dry_run,
            in_flight: header.in_flight,
        })
    }
}
