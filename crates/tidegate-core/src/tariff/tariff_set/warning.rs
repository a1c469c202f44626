use super::build::minute_of_week;
use super::checks::{Target, by_target};
use super::compiled::Tariff;
use super::tariffs::Tariffs;
use crate::tariff::calendar::{LocalTime, Period, Segment};
use crate::tariff::error::Location;
use crate::tariff::spec::{PriceSpec, TariffSpec, Tenants};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

type Targets<'a> = BTreeMap<Target<'a>, Vec<usize>>;

/// Maximum number of names listed in a warning.
const NAMED_MAX: usize = 4;

/// Warning about tariffs that are valid but probably not intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffWarning {
    /// Location of the warning.
    pub location: Location,
    /// Consequence.
    pub text: String,
}

// === impl TariffWarning ===

impl fmt::Display for TariffWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl Tariffs ===

impl Tariffs {
    /// All warnings, in the order of the tariffs: hours, dates and quantities without a price, tariffs expired at
    /// `now_ns`, prices never in effect, tenants with a different tariff than expected.
    #[must_use]
    pub fn warnings(&self, now_ns: i64) -> Vec<TariffWarning> {
        let mut warnings = Vec::new();
        for (number, (spec, tariff)) in self.specs.iter().zip(&self.tariffs).enumerate() {
            let texts = of_one(spec, tariff, now_ns);
            let location = |key| Location::tariff(number).key(key);
            warnings.extend(
                texts
                    .into_iter()
                    .map(|(key, text)| TariffWarning { location: location(key), text }),
            );
        }
        let targets = by_target(&self.specs, |number| self.tariffs[number].effective.from_ns);
        warnings.extend(self.gaps(&targets));
        warnings.extend(hidden(&targets));
        warnings.extend(self.not_for_everyone(&targets));
        warnings.sort_by_key(|warning| warning.location.tariff);
        warnings
    }

    /// Times between two tariffs without a tariff in effect.
    fn gaps(&self, targets: &Targets<'_>) -> Vec<TariffWarning> {
        let mut found: BTreeMap<(usize, usize, &str), Vec<&str>> = BTreeMap::new();
        for ((tenant, meter), numbers) in targets {
            let others = self.index.behind(*tenant, meter).into_iter();
            let others: Vec<_> = others.map(|other| self.tariff(other).effective).collect();
            for pair in numbers.windows(2) {
                let (before, after) = (&self.tariffs[pair[0]], &self.tariffs[pair[1]]);
                let (from_ns, until_ns) = (before.effective.until_ns, after.effective.from_ns);
                if from_ns < until_ns && !covered(Segment { from_ns, until_ns }, &others) {
                    let tenants = found.entry((pair[0], pair[1], meter)).or_default();
                    tenants.push(tenant.unwrap_or("*"));
                }
            }
        }
        let warning = |((before, after, meter), tenants): ((usize, usize, &str), Vec<&str>)| {
            let location = Location::tariff(after).key("effective_from");
            let (before, after) = (&self.specs[before], &self.specs[after]);
            let text = format!(
                "between the end of {:?} ({}) and the beginning of {:?} ({}) {meter:?} of {} has no tariff",
                before.name,
                shown(before.effective_until),
                after.name,
                shown(after.effective_from),
                some_of(&tenants),
            );
            TariffWarning { location, text }
        };
        found.into_iter().map(warning).collect()
    }

    /// Meters with a tariff for some tenants only.
    fn not_for_everyone(&self, targets: &BTreeMap<Target<'_>, Vec<usize>>) -> Vec<TariffWarning> {
        let mut meters: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for ((tenant, meter), numbers) in targets {
            let Some(tenant) = tenant else { continue };
            let (first, tenants) = meters.entry(meter).or_insert((numbers[0], BTreeSet::new()));
            *first = (*first).min(numbers[0]);
            tenants.insert(tenant);
        }
        let lonely =
            meters.into_iter().filter(|(meter, _)| self.index.behind(None, meter).is_empty());
        lonely
            .map(|(meter, (first, tenants))| TariffWarning {
                location: Location::tariff(first).key("tenants"),
                text: format!(
                    "only {} can use {meter:?}: for everyone else it is an unknown meter",
                    some_of(&tenants.into_iter().collect::<Vec<_>>())
                ),
            })
            .collect()
    }
}

/// Tenants whose own prefix takes precedence over a tariff for all that names the meter.
fn hidden(targets: &Targets<'_>) -> Vec<TariffWarning> {
    let mut found: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
    for ((tenant, meter), numbers) in targets {
        let (Some(tenant), Some(prefix)) = (tenant, meter.strip_suffix('*')) else { continue };
        let of_everyone = targets.range((None, prefix)..).map(|(target, _)| *target);
        let below = of_everyone.take_while(|(who, name)| who.is_none() && name.starts_with(prefix));
        for (_, name) in below {
            if name != *meter && !targets.contains_key(&(Some(tenant), name)) {
                found.entry((numbers[0], name)).or_default().push(tenant);
            }
        }
    }
    let warning = |((number, name), tenants): ((usize, &str), Vec<&str>)| {
        let text = format!(
            "for {} it wins over everyone's tariff for {name:?}: one's own goes before the more exact",
            some_of(&tenants)
        );
        TariffWarning { location: Location::tariff(number).key("meter"), text }
    };
    found.into_iter().map(warning).collect()
}

/// Warnings about one tariff by itself: the key, and the text.
fn of_one(spec: &TariffSpec, tariff: &Tariff, now_ns: i64) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    if tariff.effective.until_ns <= now_ns {
        let until = shown(spec.effective_until);
        texts.push((
            "effective_until",
            format!("it is over since {until} and prices late records only"),
        ));
    }
    let gaps = tariff.week.gaps();
    if !gaps.is_empty() {
        let gaps = gaps
            .iter()
            .map(|(from, to)| format!("{} to {}", minute_of_week(*from), minute_of_week(*to)));
        let gaps: Vec<_> = gaps.collect();
        texts.push(("", format!("no price holds from {}", joined(&gaps))));
    }
    let base = spec.windows.len() as u16;
    if spec.price.is_some() && !tariff.week.has(base) {
        let text = "its windows have every hour of the week, so its own price never holds";
        texts.push(("price", text.to_owned()));
    }
    for price in spec.windows.iter().map(|window| &window.price).chain(&spec.price) {
        if let PriceSpec::Tiers(tiers) = price
            && let Some(up_to) = tiers.last().and_then(|tier| tier.up_to)
        {
            let period = spec.period.map_or("period", Period::name);
            texts.push(("tiers", format!("beyond {up_to} a {period} there is no price")));
        }
    }
    if let Tenants::Listed(names) = &spec.tenants
        && names.iter().any(|name| name.contains('*'))
    {
        texts.push(("tenants", "a * inside of a tenant's name stands for itself".to_owned()));
    }
    texts
}

/// True if the segments together cover the whole gap.
fn covered(gap: Segment, by: &[Segment]) -> bool {
    let mut from_ns = gap.from_ns;
    while from_ns < gap.until_ns {
        let reach = by.iter().filter(|one| one.contains(from_ns)).map(|one| one.until_ns).max();
        match reach {
            Some(until_ns) => from_ns = until_ns,
            None => return false,
        }
    }
    true
}

fn shown(at: Option<LocalTime>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.to_string())
}

/// The first few names, quoted.
fn some_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    joined(&quoted)
}

fn joined(all: &[String]) -> String {
    let named = all[..all.len().min(NAMED_MAX)].join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
