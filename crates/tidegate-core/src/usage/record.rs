use rust_decimal::Decimal;
use std::sync::Arc;

/// Usage of one meter by one tenant at one time.
///
/// Names are shared: most of the million records of a minute name the same few tenants and meters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// Tenant that pays.
    pub tenant: Arc<str>,
    /// Meter, for example `tokens.output`.
    pub meter: Arc<str>,
    /// Quantity. A negative one reverts an earlier record.
    pub quantity: Decimal,
    /// Time in nanoseconds since 1970 (UTC).
    pub time_ns: i64,
    /// Further labels as `key=value` pairs, joined by commas in the order of their keys. Often empty.
    pub labels: Arc<str>,
}
