use super::build::Built;
use super::lanes::Lanes;
use super::segment::Segment;
use super::{Place, TariffMistake, TariffSpec, Tenants};
use std::collections::BTreeMap;

/// A tenant or everyone, and what is priced.
pub(super) type Target<'a> = (Option<&'a str>, &'a str);

/// The tariffs of each target, in the order in which they begin.
pub(super) fn by_target<'a>(
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

/// Who may be priced by what, and all tariffs that price the same at the same time.
pub(super) fn lanes(specs: &[TariffSpec], built: &Built) -> (Lanes, Vec<TariffMistake>) {
    let effective = |number: usize| {
        built.tariffs[number].as_ref().map_or(Segment::NEVER, |tariff| tariff.effective)
    };
    let mut lanes = Lanes::default();
    let mut mistakes: BTreeMap<(usize, usize), TariffMistake> = BTreeMap::new();
    for ((tenant, meter), numbers) in by_target(specs, |number| effective(number).from_ns) {
        // Of those that have begun, the one that ends last.
        let mut open: Option<usize> = None;
        for number in numbers {
            lanes.add(tenant, meter, number as u32);
            if effective(number).is_empty() {
                continue;
            }
            if let Some(open) = open.filter(|open| *open != number)
                && effective(open).until_ns > effective(number).from_ns
            {
                let (earlier, later) = (open.min(number), open.max(number));
                let mistake = overlap(specs, (tenant, meter), earlier, later);
                mistakes.entry((later, earlier)).or_insert(mistake);
            }
            open = open.into_iter().chain([number]).max_by_key(|one| effective(*one).until_ns);
        }
    }
    (lanes, mistakes.into_values().collect())
}

fn overlap(
    specs: &[TariffSpec],
    (tenant, meter): Target<'_>,
    earlier: usize,
    later: usize,
) -> TariffMistake {
    let tenant = tenant.unwrap_or("*");
    let wrong = format!(
        "the tariffs {:?} and {:?} both price {meter:?} of {tenant:?} at the same time",
        specs[earlier].name, specs[later].name
    );
    TariffMistake::new(
        Place::tariff(later),
        wrong,
        "one tariff at a time for each tenant and meter",
        "let one end (effective_until) where the other begins (effective_from)",
    )
}
