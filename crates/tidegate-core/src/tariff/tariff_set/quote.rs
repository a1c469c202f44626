use super::tariffs::{Candidates, Tariffs, TierKey, Verdict};
use crate::tariff::exact;
use crate::tariff::tiers::TierPart;
use crate::usage::UsageCharge;
use rust_decimal::Decimal;
use std::sync::Arc;

/// Price of a quantity, with its derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// UsageCharge for the quantity.
    pub charge: UsageCharge,
    /// Number of the tariff in effect, in [`Tariffs::specs`]. It may still have no price at that time.
    pub tariff: Option<usize>,
    /// Number of its window; `None` for the base price.
    pub window: Option<usize>,
    /// Quantity by tiers. Empty if the fallback prices it.
    pub parts: Vec<Part>,
    /// Sum on which the tiers depend, if any.
    pub tier_key: Option<TierKey>,
}

/// Part of a quantity priced by one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the tier, from 0; `None` beyond the last.
    pub tier: Option<usize>,
    /// Quantity of the part.
    pub quantity: Decimal,
    /// Price of one unit.
    pub unit_price: Decimal,
    /// Amount of the part.
    pub amount: Decimal,
}

// === impl Tariffs ===

impl Tariffs {
    /// Prices a quantity at a time, after `used` in the same period.
    #[must_use]
    pub fn quote(
        &self,
        (tenant, meter): (&str, &str),
        time_ns: i64,
        used: Decimal,
        quantity: Decimal,
    ) -> Quote {
        let candidates = self.candidates(tenant, meter);
        let (verdict, _) = self.verdict(&candidates, time_ns);
        let mut parts = Vec::new();
        // The sum itself has to fit, as in the account cache.
        let charge = match exact::add(used, quantity) {
            Some(_) => self.charge(verdict, used, quantity, |part| {
                let TierPart { tier, quantity, unit_price, amount } = part;
                parts.push(Part { tier, quantity, unit_price, amount });
            }),
            None => self.by_fallback(quantity, crate::usage::Fallback::OutOfRange),
        };
        let tier_key =
            self.tier_counter(verdict).map(|counter| self.period(counter, time_ns)).map(|period| {
                TierKey {
                    tenant: Arc::from(tenant),
                    meter: Arc::from(meter),
                    from_ns: period.from_ns,
                    until_ns: period.until_ns,
                }
            });
        let (tariff, window) = self.in_effect(verdict, &candidates, time_ns);
        Quote { charge, tariff, window, parts, tier_key }
    }

    /// Tariff in effect, and its window.
    fn in_effect(
        &self,
        verdict: Verdict,
        candidates: &Candidates,
        time_ns: i64,
    ) -> (Option<usize>, Option<usize>) {
        match verdict {
            Verdict::Rate { tariff, rate } => {
                let (tariff, rate) = (tariff as usize, usize::from(rate));
                let is_window = rate < self.specs[tariff].windows.len();
                (Some(tariff), is_window.then_some(rate))
            }
            Verdict::Gap(_) => {
                let holds = |number: &&u32| self.tariff(**number).effective.contains(time_ns);
                (candidates.tariffs.iter().find(holds).map(|number| *number as usize), None)
            }
        }
    }
}
