use rust_decimal::Decimal;
use std::sync::Arc;

/// So much of something was used by someone at some time.
///
/// Names are shared: of the million records of a minute most name the same few tenants and meters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// Who pays.
    pub tenant: Arc<str>,
    /// What was counted, for example `tokens.output`.
    pub meter: Arc<str>,
    /// How much of it. Negative takes back what was counted before.
    pub quantity: Decimal,
    /// When, in nanoseconds since 1970 (UTC).
    pub time_ns: i64,
    /// What else its sender said of it, as `key=value` pairs joined by commas in the order of their keys. Often
    /// empty.
    pub labels: Arc<str>,
}
