use crate::tariff::calendar::{Period, Segment, Week, Zone};
use crate::tariff::tiers::Tiers;
use std::sync::Arc;

/// Tariff prepared for pricing.
#[derive(Debug)]
pub(in crate::tariff) struct Tariff {
    pub(in crate::tariff) name: Arc<str>,
    pub(in crate::tariff) effective: Segment,
    pub(in crate::tariff) zone: Arc<Zone>,
    pub(in crate::tariff) week: Week,
    /// Rates of the windows in order, then of the base price.
    pub(in crate::tariff) rates: Vec<Tiers>,
    /// Number of the period that its tiers count over, if any.
    pub(in crate::tariff) counter: Option<u16>,
}

/// Period and zone that tiers count over.
#[derive(Debug)]
pub(in crate::tariff) struct Counter {
    pub(in crate::tariff) zone: Arc<Zone>,
    pub(in crate::tariff) period: Period,
}
