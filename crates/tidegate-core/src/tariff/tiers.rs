use super::exact;
use rust_decimal::Decimal;
use std::cmp::Ordering;

/// Unit prices by earlier usage.
#[derive(Debug)]
pub(super) struct Tiers {
    tiers: Vec<Tier>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tier {
    pub(super) up_to: Option<Decimal>,
    pub(super) unit_price: Decimal,
}

/// Part of a quantity priced by one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TierPart {
    /// Number of the tier; `None` beyond the last.
    pub(super) tier: Option<usize>,
    pub(super) quantity: Decimal,
    pub(super) unit_price: Decimal,
    pub(super) amount: Decimal,
}

/// Cost of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) amount: Decimal,
    /// A part was beyond the last tier.
    pub(super) beyond: bool,
}

// === impl Tiers ===

impl Tiers {
    /// Creates tiers in rising order, at least one; only the last may be unbounded.
    pub(super) fn new(tiers: Vec<Tier>) -> Self {
        Self { tiers }
    }

    /// True if the price depends on earlier usage.
    pub(super) fn depend(&self) -> bool {
        !matches!(self.tiers[..], [] | [Tier { up_to: None, .. }])
    }

    /// True if there is a price for any quantity.
    pub(super) fn are_open(&self) -> bool {
        self.tiers.last().is_some_and(|tier| tier.up_to.is_none())
    }

    /// Cost of a quantity after `used`, split by tiers. A negative quantity is subtracted from the top, so that it
    /// reverts exactly the cost of the same positive quantity. `beyond` is the unit price beyond the last tier.
    /// `None` if a number does not fit.
    pub(super) fn cost(
        &self,
        used: Decimal,
        quantity: Decimal,
        beyond: Decimal,
        mut each: impl FnMut(TierPart),
    ) -> Option<Cost> {
        if let [Tier { up_to: None, unit_price }] = self.tiers[..] {
            let amount = exact::mul(quantity, unit_price)?;
            each(TierPart { tier: Some(0), quantity, unit_price, amount });
            return Some(Cost { amount, beyond: false });
        }
        let (mut used, mut left) = (used, quantity);
        let mut cost = Cost { amount: Decimal::ZERO, beyond: false };
        while !left.is_zero() {
            let (tier, room) = self.room(used, left)?;
            let part = room.map_or(left, |room| nearer(left, room));
            let unit_price = tier.map_or(beyond, |tier| self.tiers[tier].unit_price);
            let amount = exact::mul(part, unit_price)?;
            each(TierPart { tier, quantity: part, unit_price, amount });
            cost.beyond |= tier.is_none();
            if part == left && cost.amount.is_zero() {
                return Some(Cost { amount, ..cost });
            }
            cost.amount = exact::add(cost.amount, amount)?;
            left = exact::sub(left, part)?;
            used = exact::add(used, part)?;
        }
        Some(cost)
    }

    /// Tier of the next unit, upwards or downwards by the sign of `left`, and its remaining quantity in that
    /// direction.
    fn room(&self, used: Decimal, left: Decimal) -> Option<(Option<usize>, Option<Decimal>)> {
        let up = left > Decimal::ZERO;
        let full = |tier: &Tier| match tier.up_to.map(|up_to| used.cmp(&up_to)) {
            None | Some(Ordering::Less) => false,
            // At the border, up is the next tier and down is this one.
            Some(Ordering::Equal) => up,
            Some(Ordering::Greater) => true,
        };
        let index = self.tiers.iter().position(|tier| !full(tier)).unwrap_or(self.tiers.len());
        let border = if up {
            self.tiers.get(index).and_then(|tier| tier.up_to)
        } else {
            index.checked_sub(1).and_then(|below| self.tiers[below].up_to)
        };
        let room = match border {
            Some(border) => Some(exact::sub(border, used)?),
            None => None,
        };
        Some(((index < self.tiers.len()).then_some(index), room))
    }
}

/// The number nearer to zero, of two with the same sign.
fn nearer(a: Decimal, b: Decimal) -> Decimal {
    if a.is_sign_negative() { a.max(b) } else { a.min(b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tiers(open: bool) -> Tiers {
        let tier = |up_to: Option<i64>, price: i64| Tier {
            up_to: up_to.map(Decimal::from),
            unit_price: Decimal::new(price, 3),
        };
        let mut tiers = vec![tier(Some(10), 60), tier(Some(100), 50)];
        tiers.extend(open.then(|| tier(None, 41)));
        Tiers::new(tiers)
    }

    fn cost(tiers: &Tiers, used: Decimal, quantity: Decimal) -> Cost {
        tiers.cost(used, quantity, Decimal::ONE, |_| ()).unwrap()
    }

    #[test]
    fn a_quantity_is_cut_at_the_borders() {
        let mut cuts = Vec::new();
        let cost = tiers(true).cost(5.into(), 200.into(), Decimal::ONE, |part| {
            cuts.push((part.tier, part.quantity, part.amount.to_string()));
        });
        let expected = [
            (Some(0), 5.into(), "0.300".to_owned()),
            (Some(1), 90.into(), "4.500".to_owned()),
            (Some(2), 105.into(), "4.305".to_owned()),
        ];
        assert_eq!(cuts, expected);
        assert_eq!(cost, Some(Cost { amount: Decimal::new(9_105, 3), beyond: false }));
    }

    #[test]
    fn beyond_the_last_tier_is_told() {
        let closed = tiers(false);
        assert!(!cost(&closed, 0.into(), 100.into()).beyond);
        let over = cost(&closed, 99.into(), 3.into());
        assert_eq!((over.amount, over.beyond), (Decimal::new(2_050, 3), true));
        assert!(cost(&closed, 102.into(), (-1).into()).beyond);
    }

    proptest! {
        #[test]
        fn any_split_costs_the_same_and_a_correction_undoes_it(
            start in -300_i64..3_000,
            parts in prop::collection::vec(-2_000_i64..2_000, 1..20),
            open: bool,
        ) {
            let tiers = tiers(open);
            let (start, mut used) = (Decimal::new(start, 1), Decimal::new(start, 1));
            let mut sum = Decimal::ZERO;
            for part in parts.into_iter().map(|part| Decimal::new(part, 1)) {
                let there = cost(&tiers, used, part);
                prop_assert_eq!(cost(&tiers, used + part, -part).amount, -there.amount);
                sum += there.amount;
                used += part;
            }
            prop_assert_eq!(cost(&tiers, start, used - start).amount, sum);
        }
    }
}
