use super::build::Built;
use super::tariff_index::TariffIndex;
use crate::tariff::calendar::Segment;
use crate::tariff::error::{Location, TariffError};
use crate::tariff::spec::{TariffSpec, Tenants};
use std::collections::BTreeMap;

/// Tenant (`None` for all) and meter pattern.
pub(in crate::tariff) type Target<'a> = (Option<&'a str>, &'a str);

/// Tariffs of each target, ordered by their beginning.
pub(in crate::tariff) fn by_target<'a>(
    specs: &'a [TariffSpec],
    from_ns: impl Fn(usize) -> i64,
) -> BTreeMap<Target<'a>, Vec<usize>> {
    let mut targets: BTreeMap<Target<'_>, Vec<usize>> = BTreeMap::new();
    for (number, spec) in specs.iter().enumerate() {
        match &spec.tenants {
            Tenants::All => targets.entry((None, &spec.meter)).or_default().push(number),
            Tenants::Listed(names) => {
                for name in names {
                    let target = (Some(name.as_str()), spec.meter.as_str());
                    targets.entry(target).or_default().push(number);
                }
            }
        }
    }
    targets.values_mut().for_each(|numbers| numbers.sort_by_key(|number| from_ns(*number)));
    targets
}

/// Index of the tariffs, and errors for tariffs that price the same target at the same time.
pub(in crate::tariff) fn index(
    specs: &[TariffSpec],
    built: &Built,
) -> (TariffIndex, Vec<TariffError>) {
    let effective = |number: usize| {
        built.tariffs[number].as_ref().map_or(Segment::NEVER, |tariff| tariff.effective)
    };
    let mut index = TariffIndex::default();
    let mut errors: BTreeMap<(usize, usize), TariffError> = BTreeMap::new();
    for ((tenant, meter), numbers) in by_target(specs, |number| effective(number).from_ns) {
        // Of those that have begun, the one that ends last.
        let mut open: Option<usize> = None;
        for number in numbers {
            index.add(tenant, meter, number as u32);
            if effective(number).is_empty() {
                continue;
            }
            if let Some(open) = open.filter(|open| *open != number)
                && effective(open).until_ns > effective(number).from_ns
            {
                let (earlier, later) = (open.min(number), open.max(number));
                let error = overlap(specs, (tenant, meter), earlier, later);
                errors.entry((later, earlier)).or_insert(error);
            }
            open = open.into_iter().chain([number]).max_by_key(|one| effective(*one).until_ns);
        }
    }
    (index, errors.into_values().collect())
}

fn overlap(
    specs: &[TariffSpec],
    (tenant, meter): Target<'_>,
    earlier: usize,
    later: usize,
) -> TariffError {
    let tenant = tenant.unwrap_or("*");
    let wrong = format!(
        "the tariffs {:?} and {:?} both price {meter:?} of {tenant:?} at the same time",
        specs[earlier].name, specs[later].name
    );
    TariffError::new(
        Location::tariff(later),
        wrong,
        "one tariff at a time for each tenant and meter",
        "let one end (effective_until) where the other begins (effective_from)",
    )
}
