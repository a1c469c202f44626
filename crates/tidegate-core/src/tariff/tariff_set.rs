use super::lanes::Lanes;
use super::segment::Segment;
use super::tiers::Tiers;
use super::week::Week;
use super::zone::Zone;
use super::{FallbackSpec, Period, TariffMistake, TariffSpec, build, checks};
use crate::usage::{Charge, Fallback};
use rust_decimal::Decimal;
use std::sync::Arc;

/// Checked tariffs. They never change; a new set is put in the place of an old one.
///
/// Which tariff prices a record: of those in effect at its time, the tenant's own before everyone's, then the one
/// that names the meter before the one with the longest prefix.
#[derive(Debug)]
pub struct Tariffs {
    pub(super) specs: Vec<TariffSpec>,
    pub(super) tariffs: Vec<Tariff>,
    pub(super) lanes: Lanes,
    /// Everything that tiers count over; tariffs name theirs by its number.
    pub(super) counters: Vec<Counter>,
    pub(super) fallback: FallbackSpec,
    pub(super) fallback_name: Arc<str>,
}

/// A sum that tiers depend on: how much a tenant has used of a meter in a period, whichever tariff priced it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierKey {
    /// Who used it.
    pub tenant: Arc<str>,
    /// What was used.
    pub meter: Arc<str>,
    /// When the period begins, in nanoseconds since 1970, at the start of a minute.
    pub from_ns: i64,
    /// When it ends, not included, at the start of a minute.
    pub until_ns: i64,
}

/// A tariff in the form in which it is used.
#[derive(Debug)]
pub(super) struct Tariff {
    pub(super) name: Arc<str>,
    pub(super) effective: Segment,
    pub(super) zone: Arc<Zone>,
    pub(super) week: Week,
    /// The windows' in their order, then the base price's.
    pub(super) rates: Vec<Tiers>,
    /// What its tiers count over, when it has any.
    pub(super) counter: Option<u16>,
}

/// What tiers add up over.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) zone: Arc<Zone>,
    pub(super) period: Period,
}

/// All that may price one tenant's meter.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    pub(super) candidates: Vec<u32>,
    pub(super) counters: Vec<u16>,
}

/// What prices a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Rate { tariff: u32, rate: u16 },
    Gap(Fallback),
}

// === impl Tariffs ===

impl Tariffs {
    /// Checks the tariffs and brings them into a form that prices quickly.
    ///
    /// # Errors
    ///
    /// All mistakes, in the order of the tariffs.
    pub fn new(specs: Vec<TariffSpec>, fallback: FallbackSpec) -> Result<Self, Vec<TariffMistake>> {
        let built = build::build(&specs, &fallback);
        let (lanes, overlaps) = checks::lanes(&specs, &built);
        let build::Built { tariffs, counters, mut mistakes } = built;
        mistakes.extend(overlaps);
        let tariffs: Option<Vec<_>> = tariffs.into_iter().collect();
        match tariffs {
            Some(tariffs) if mistakes.is_empty() => {
                let fallback_name = fallback.name.as_str().into();
                Ok(Self { specs, tariffs, lanes, counters, fallback, fallback_name })
            }
            _ => {
                mistakes.sort_by_key(|mistake| mistake.place);
                Err(mistakes)
            }
        }
    }

    /// No tariff at all: everything is priced by the fallback.
    #[must_use]
    pub fn none() -> Self {
        let fallback = FallbackSpec::default();
        Self {
            specs: Vec::new(),
            tariffs: Vec::new(),
            lanes: Lanes::default(),
            counters: Vec::new(),
            fallback_name: fallback.name.as_str().into(),
            fallback,
        }
    }

    /// The tariffs as they were given.
    #[must_use]
    pub fn specs(&self) -> &[TariffSpec] {
        &self.specs
    }

    /// How usage is priced that no tariff fits.
    #[must_use]
    pub fn fallback(&self) -> &FallbackSpec {
        &self.fallback
    }

    pub(super) fn lane(&self, tenant: &str, meter: &str) -> Lane {
        let candidates = self.lanes.candidates(tenant, meter);
        let mut counters: Vec<_> =
            candidates.iter().filter_map(|tariff| self.tariff(*tariff).counter).collect();
        counters.sort_unstable();
        counters.dedup();
        Lane { candidates, counters }
    }

    /// Whether any price depends on what was used before.
    pub(super) fn have_tiers(&self) -> bool {
        !self.counters.is_empty()
    }

    #[inline]
    pub(super) fn tariff(&self, number: u32) -> &Tariff {
        &self.tariffs[number as usize]
    }

    /// What prices a lane's record of that time, and for how long around it the answer is the same.
    pub(super) fn verdict(&self, lane: &Lane, at_ns: i64) -> (Verdict, Segment) {
        let mut same = Segment::ALWAYS;
        for number in &lane.candidates {
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
        let reason =
            if lane.candidates.is_empty() { Fallback::UnknownMeter } else { Fallback::NotInEffect };
        (Verdict::Gap(reason), same)
    }

    /// The periods around a time whose sums a lane's tiers need: none of one in which no such tariff holds. Also
    /// for how long around that time these are the same.
    pub(super) fn periods(
        &self,
        lane: &Lane,
        at_ns: i64,
        mut each: impl FnMut(u16, Segment),
    ) -> Segment {
        let mut same = Segment::ALWAYS;
        for number in &lane.counters {
            let period = self.period(*number, at_ns);
            same = same.and(period);
            let needed = lane.candidates.iter().any(|tariff| {
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

    /// What counts the sum that the price depends on.
    pub(super) fn tier_counter(&self, verdict: Verdict) -> Option<u16> {
        let Verdict::Rate { tariff, rate } = verdict else { return None };
        let tariff = self.tariff(tariff);
        tariff.counter.filter(|_| tariff.rates[usize::from(rate)].depend())
    }

    pub(super) fn period(&self, counter: u16, at_ns: i64) -> Segment {
        let Counter { zone, period } = &self.counters[usize::from(counter)];
        period.around(zone, at_ns)
    }

    /// A charge by the fallback.
    pub(super) fn by_fallback(&self, quantity: Decimal, reason: Fallback) -> Charge {
        let amount = super::exact::mul(quantity, self.fallback.price);
        Charge {
            amount: amount.unwrap_or_default(),
            currency: self.fallback.currency,
            tariff: Arc::clone(&self.fallback_name),
            fallback: Some(if amount.is_some() { reason } else { Fallback::OutOfRange }),
        }
    }

    /// A charge of a quantity of which so much was used before.
    pub(super) fn charge(
        &self,
        verdict: Verdict,
        used: Decimal,
        quantity: Decimal,
        each: impl FnMut(super::tiers::Cut),
    ) -> Charge {
        let (number, rate) = match verdict {
            Verdict::Rate { tariff, rate } => (tariff, rate),
            Verdict::Gap(reason) => return self.by_fallback(quantity, reason),
        };
        let tariff = self.tariff(number);
        let tiers = &tariff.rates[usize::from(rate)];
        match tiers.cost(used, quantity, self.fallback.price, each) {
            Some(cost) => Charge {
                amount: cost.amount,
                currency: self.specs[number as usize].currency,
                tariff: Arc::clone(&tariff.name),
                fallback: cost.beyond.then_some(Fallback::NoTier),
            },
            None => self.by_fallback(quantity, Fallback::OutOfRange),
        }
    }
}
