use super::tariff_set::{Lane, Verdict};
use super::{Tariffs, TierKey, exact};
use crate::usage::Charge;
use rust_decimal::Decimal;
use std::sync::Arc;

/// What a quantity would cost, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The charge.
    pub charge: Charge,
    /// Which tariff holds, by its place among [`Tariffs::specs`]. It may still have no price at that time.
    pub tariff: Option<usize>,
    /// Which of its windows; `None` is its base price.
    pub window: Option<usize>,
    /// The quantity by tiers. Empty when the fallback prices it.
    pub parts: Vec<Part>,
    /// The sum on which the tiers depend, when they do.
    pub tier_key: Option<TierKey>,
}

/// A part of a quantity that one tier prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which tier, from 0; `None` is beyond the last.
    pub tier: Option<usize>,
    /// How much of the quantity.
    pub quantity: Decimal,
    /// The price of one unit.
    pub unit_price: Decimal,
    /// What the part costs.
    pub amount: Decimal,
}

// === impl Tariffs ===

impl Tariffs {
    /// What a quantity at a time would cost, when so much was used before it in the period.
    #[must_use]
    pub fn quote(
        &self,
        (tenant, meter): (&str, &str),
        time_ns: i64,
        used: Decimal,
        quantity: Decimal,
    ) -> Quote {
        let lane = self.lane(tenant, meter);
        let (verdict, _) = self.verdict(&lane, time_ns);
        let mut parts = Vec::new();
        // The sum itself has to fit, as it has to in a book.
        let charge = match exact::add(used, quantity) {
            Some(_) => self.charge(verdict, used, quantity, |cut| {
                let super::tiers::Cut { tier, quantity, unit_price, amount } = cut;
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
        let (tariff, window) = self.placed(verdict, &lane, time_ns);
        Quote { charge, tariff, window, parts, tier_key }
    }

    /// Which tariff holds, and which of its windows.
    fn placed(
        &self,
        verdict: Verdict,
        lane: &Lane,
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
                (lane.candidates.iter().find(holds).map(|number| *number as usize), None)
            }
        }
    }
}
