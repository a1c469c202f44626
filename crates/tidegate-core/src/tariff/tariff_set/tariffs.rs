use super::compiled::{Counter, Tariff};
use super::tariff_index::TariffIndex;
use super::{build, checks};
use crate::tariff::calendar::Segment;
use crate::tariff::error::TariffError;
use crate::tariff::exact;
use crate::tariff::spec::{FallbackSpec, TariffSpec};
use crate::tariff::tiers::TierPart;
use crate::usage::{Fallback, UsageCharge};
use rust_decimal::Decimal;
use std::sync::Arc;

/// Checked tariffs, immutable: a new set replaces an old one.
///
/// Precedence among the tariffs in effect at a record's time: the tenant's own before those for all, then an exact
/// meter before the longest prefix.
#[derive(Debug)]
pub struct Tariffs {
    pub(in crate::tariff) specs: Vec<TariffSpec>,
    pub(in crate::tariff) tariffs: Vec<Tariff>,
    pub(in crate::tariff) index: TariffIndex,
    /// Periods that tiers count over, referenced by their number.
    pub(in crate::tariff) counters: Vec<Counter>,
    pub(in crate::tariff) fallback: FallbackSpec,
    pub(in crate::tariff) fallback_name: Arc<str>,
}

/// Key of a sum that tiers depend on: usage of a meter by a tenant in a period, whichever tariff priced it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierKey {
    /// Tenant.
    pub tenant: Arc<str>,
    /// Meter.
    pub meter: Arc<str>,
    /// Start of the period in nanoseconds since 1970, at a whole minute.
    pub from_ns: i64,
    /// End of the period, exclusive, at a whole minute.
    pub until_ns: i64,
}

/// Candidate tariffs and counters of one tenant's meter.
#[derive(Clone, Debug, Default)]
pub(in crate::tariff) struct Candidates {
    pub(in crate::tariff) tariffs: Vec<u32>,
    pub(in crate::tariff) counters: Vec<u16>,
}

/// Pricing decision for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tariff) enum Verdict {
    Rate { tariff: u32, rate: u16 },
    Gap(Fallback),
}

// === impl Tariffs ===

impl Tariffs {
    /// Checks the tariffs and prepares them for pricing.
    ///
    /// # Errors
    ///
    /// All errors, in the order of the tariffs.
    pub fn new(specs: Vec<TariffSpec>, fallback: FallbackSpec) -> Result<Self, Vec<TariffError>> {
        let built = build::build(&specs, &fallback);
        let (index, overlaps) = checks::index(&specs, &built);
        let build::Built { tariffs, counters, mut errors } = built;
        errors.extend(overlaps);
        let tariffs: Option<Vec<_>> = tariffs.into_iter().collect();
        match tariffs {
            Some(tariffs) if errors.is_empty() => {
                let fallback_name = fallback.name.as_str().into();
                Ok(Self { specs, tariffs, index, counters, fallback, fallback_name })
            }
            _ => {
                errors.sort_by_key(|error| error.location);
                Err(errors)
            }
        }
    }

    /// Empty set: the fallback prices everything.
    #[must_use]
    pub fn none() -> Self {
        let fallback = FallbackSpec::default();
        Self {
            specs: Vec::new(),
            tariffs: Vec::new(),
            index: TariffIndex::default(),
            counters: Vec::new(),
            fallback_name: fallback.name.as_str().into(),
            fallback,
        }
    }

    /// Specifications of the tariffs.
    #[must_use]
    pub fn specs(&self) -> &[TariffSpec] {
        &self.specs
    }

    /// Price of usage without a tariff.
    #[must_use]
    pub fn fallback(&self) -> &FallbackSpec {
        &self.fallback
    }

    pub(in crate::tariff) fn candidates(&self, tenant: &str, meter: &str) -> Candidates {
        let tariffs = self.index.candidates(tenant, meter);
        let mut counters: Vec<_> =
            tariffs.iter().filter_map(|tariff| self.tariff(*tariff).counter).collect();
        counters.sort_unstable();
        counters.dedup();
        Candidates { tariffs, counters }
    }

    /// True if any price depends on earlier usage.
    #[must_use]
    pub fn have_tiers(&self) -> bool {
        !self.counters.is_empty()
    }

    #[inline]
    pub(in crate::tariff) fn tariff(&self, number: u32) -> &Tariff {
        &self.tariffs[number as usize]
    }

    /// Decision for a record at that time, and the segment around it with the same decision.
    pub(in crate::tariff) fn verdict(
        &self,
        candidates: &Candidates,
        at_ns: i64,
    ) -> (Verdict, Segment) {
        let mut same = Segment::ALWAYS;
        for number in &candidates.tariffs {
            let tariff = self.tariff(*number);
            if !tariff.effective.contains(at_ns) {
                same = same.without(tariff.effective, at_ns);
                continue;
            }
            let (rate, run) = tariff.week.at(&tariff.zone, at_ns);
            let verdict = rate.map_or(Verdict::Gap(Fallback::NoWindow), |rate| Verdict::Rate {
                tariff: *number,
                rate,
            });
            return (verdict, same.and(tariff.effective).and(run));
        }
        let reason = if candidates.tariffs.is_empty() {
            Fallback::UnknownMeter
        } else {
            Fallback::NotInEffect
        };
        (Verdict::Gap(reason), same)
    }

    /// Calls `each` for every period around a time whose sum the tiers need, skipping those without a tariff in
    /// effect. Returns the segment around that time with the same periods.
    pub(in crate::tariff) fn periods(
        &self,
        candidates: &Candidates,
        at_ns: i64,
        mut each: impl FnMut(u16, Segment),
    ) -> Segment {
        let mut same = Segment::ALWAYS;
        for number in &candidates.counters {
            let period = self.period(*number, at_ns);
            same = same.and(period);
            let needed = candidates.tariffs.iter().any(|tariff| {
                let tariff = self.tariff(*tariff);
                let common = tariff.effective.and(period);
                tariff.counter == Some(*number) && !common.is_empty()
            });
            if needed {
                each(*number, period);
            }
        }
        same
    }

    /// Counter of the sum that the price depends on.
    pub(in crate::tariff) fn tier_counter(&self, verdict: Verdict) -> Option<u16> {
        let Verdict::Rate { tariff, rate } = verdict else { return None };
        let tariff = self.tariff(tariff);
        tariff.counter.filter(|_| tariff.rates[usize::from(rate)].depend())
    }

    pub(in crate::tariff) fn period(&self, counter: u16, at_ns: i64) -> Segment {
        let Counter { zone, period } = &self.counters[usize::from(counter)];
        period.around(zone, at_ns)
    }

    /// UsageCharge by the fallback.
    pub(in crate::tariff) fn by_fallback(
        &self,
        quantity: Decimal,
        reason: Fallback,
    ) -> UsageCharge {
        let amount = exact::mul(quantity, self.fallback.price);
        UsageCharge {
            amount: amount.unwrap_or_default(),
            currency: self.fallback.currency,
            tariff: Arc::clone(&self.fallback_name),
            fallback: Some(if amount.is_some() { reason } else { Fallback::OutOfRange }),
        }
    }

    /// UsageCharge of a quantity after `used` in the same period.
    pub(in crate::tariff) fn charge(
        &self,
        verdict: Verdict,
        used: Decimal,
        quantity: Decimal,
        each: impl FnMut(TierPart),
    ) -> UsageCharge {
        let (number, rate) = match verdict {
            Verdict::Rate { tariff, rate } => (tariff, rate),
            Verdict::Gap(reason) => return self.by_fallback(quantity, reason),
        };
        let tariff = self.tariff(number);
        let tiers = &tariff.rates[usize::from(rate)];
        match tiers.cost(used, quantity, self.fallback.price, each) {
            Some(cost) => UsageCharge {
                amount: cost.amount,
                currency: self.specs[number as usize].currency,
                tariff: Arc::clone(&tariff.name),
                fallback: cost.beyond.then_some(Fallback::NoTier),
            },
            None => self.by_fallback(quantity, Fallback::OutOfRange),
        }
    }
}
