use super::segment::Segment;
use super::tariff_set::{Counter, Tariff};
use super::tiers::{Tier, Tiers};
use super::week::{DAY_MINUTES, Week, WeekPlan};
use super::zone::Zone;
use super::{
    Days, FallbackSpec, Place, PriceSpec, TariffMistake, TariffSpec, Tenants, TierSpec, WindowSpec,
    exact,
};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A file of this size is more likely made by mistake than by a person; numbers stay small beside it.
const TARIFFS_MAX: usize = 100_000;
const WINDOWS_MAX: usize = 500;
const TIERS_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 255;
const PER_MAX: u64 = 1_000_000_000_000_000;

/// Tariffs, each checked by itself. One that is missing has a mistake.
pub(super) struct Built {
    pub(super) tariffs: Vec<Option<Tariff>>,
    pub(super) counters: Vec<Counter>,
    pub(super) mistakes: Vec<TariffMistake>,
}

/// Goes through tariffs one by one and notes every mistake.
struct Builder<'a> {
    fallback: &'a FallbackSpec,
    mistakes: Vec<TariffMistake>,
    zones: BTreeMap<String, Option<Arc<Zone>>>,
    counters: Vec<Counter>,
    names: BTreeSet<&'a str>,
}

pub(super) fn build(specs: &[TariffSpec], fallback: &FallbackSpec) -> Built {
    let mut builder = Builder {
        fallback,
        mistakes: Vec::new(),
        zones: BTreeMap::new(),
        counters: Vec::new(),
        names: BTreeSet::from([fallback.name.as_str()]),
    };
    builder.check_whole(specs);
    let tariffs =
        specs.iter().enumerate().map(|(number, spec)| builder.tariff(number, spec)).collect();
    Built { tariffs, counters: builder.counters, mistakes: builder.mistakes }
}

// === impl Builder ===

impl<'a> Builder<'a> {
    fn wrong(&mut self, place: Place, wrong: String, expected: &str, fix: &str) {
        self.mistakes.push(TariffMistake::new(place, wrong, expected, fix));
    }

    fn check_whole(&mut self, specs: &[TariffSpec]) {
        let place = Place::default();
        self.check_name(place.key("name"), &self.fallback.name);
        self.check_price(place.key("price"), self.fallback.price);
        if specs.len() > TARIFFS_MAX {
            let wrong = format!("there are {} tariffs", specs.len());
            self.wrong(place, wrong, "at most 100000", "list several tenants in one tariff");
        }
    }

    fn tariff(&mut self, number: usize, spec: &'a TariffSpec) -> Option<Tariff> {
        let place = Place::tariff(number);
        self.check_name(place.key("name"), &spec.name);
        if !self.names.insert(&spec.name) {
            let wrong = format!("the name {:?} is taken", spec.name);
            let expected = "a name that no other tariff has, nor the fallback";
            self.wrong(place.key("name"), wrong, expected, "give one of them another name");
        }
        self.check_tenants(place.key("tenants"), &spec.tenants);
        self.check_meter(place.key("meter"), &spec.meter);
        if spec.per == 0 || spec.per > PER_MAX {
            let wrong = format!("per is {}", spec.per);
            self.wrong(
                place.key("per"),
                wrong,
                "1 … 10^15 units",
                "say for how many units a price is",
            );
        }
        let zone = self.zone(place.key("time_zone"), &spec.time_zone)?;
        let effective = self.effective(place, spec, &zone);
        let (week, rates) = self.rates(place, spec);
        let counter = self.counter(place, spec, &zone, &rates);
        Some(Tariff { name: spec.name.as_str().into(), effective, zone, week, rates, counter })
    }

    fn check_name(&mut self, place: Place, name: &str) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let wrong = format!("{name:?} is no name");
            self.wrong(place, wrong, "1 … 255 bytes of text on one line", "write a short name");
        }
    }

    fn check_tenants(&mut self, place: Place, tenants: &Tenants) {
        let Tenants::Listed(names) = tenants else { return };
        if names.is_empty() {
            let fix = "name at least one tenant, or write \"*\" for everyone";
            self.wrong(place, "no tenant is listed".to_owned(), "names of tenants, or \"*\"", fix);
        }
        let mut seen = BTreeSet::new();
        for name in names {
            if name == "*" {
                let fix = "write tenants = \"*\" for everyone, or leave the * out";
                self.wrong(place, "\"*\" is in a list".to_owned(), "names of tenants", fix);
            } else {
                self.check_name(place, name);
            }
            if !seen.insert(name) {
                let wrong = format!("the tenant {name:?} is listed twice");
                self.wrong(place, wrong, "each tenant once", "remove one of them");
            }
        }
    }

    fn check_meter(&mut self, place: Place, meter: &str) {
        self.check_name(place, meter);
        let stem = match meter.strip_suffix('*') {
            Some(stem) if stem.is_empty() || stem.ends_with('.') => stem,
            _ => meter,
        };
        if stem.contains('*') {
            let wrong = format!("the meter {meter:?} has a * that stands for nothing");
            let expected = "a meter's name, a prefix such as \"tokens.*\", or \"*\"";
            self.wrong(
                place,
                wrong,
                expected,
                "put the * behind the last dot, or write the whole name",
            );
        }
    }

    fn zone(&mut self, place: Place, name: &str) -> Option<Arc<Zone>> {
        let zone = self
            .zones
            .entry(name.to_owned())
            .or_insert_with(|| Zone::find(name).ok().map(Arc::new))
            .clone();
        if zone.is_none() {
            let wrong = format!("{name:?} is no time zone");
            self.wrong(
                place,
                wrong,
                "an IANA name",
                "write a name such as \"Europe/Berlin\" or \"UTC\"",
            );
        }
        zone
    }

    fn effective(&mut self, place: Place, spec: &TariffSpec, zone: &Zone) -> Segment {
        let from_ns = spec.effective_from.map_or(i64::MIN, |at| at.in_zone(zone));
        let until_ns = spec.effective_until.map_or(i64::MAX, |at| at.in_zone(zone));
        if let (Some(from), Some(until)) = (spec.effective_from, spec.effective_until)
            && from_ns >= until_ns
        {
            let wrong = format!("it ends on {until}, which is not after it begins on {from}");
            let fix = "exchange the two, or correct one; the end itself is not included";
            self.wrong(place.key("effective_until"), wrong, "an end after the beginning", fix);
        }
        Segment { from_ns, until_ns }
    }

    fn rates(&mut self, place: Place, spec: &TariffSpec) -> (Week, Vec<Tiers>) {
        let mut plan = WeekPlan::new();
        let mut rates = Vec::new();
        if spec.windows.len() > WINDOWS_MAX {
            let wrong = format!("there are {} windows", spec.windows.len());
            self.wrong(place, wrong, "at most 500", "leave out days that are the same");
            return (plan.finish(), rates);
        }
        for (number, window) in spec.windows.iter().enumerate() {
            self.window(place.window(number), spec, window, (number, &mut plan));
            rates.push(self.tiers(place.window(number), spec, &window.price));
        }
        if let Some(price) = &spec.price {
            plan.fill(rates.len() as u16);
            rates.push(self.tiers(place, spec, price));
        } else if spec.windows.is_empty() {
            let fix = "write price = \"…\", tiers = […], or at least one [[tariff.window]]";
            self.wrong(place, "it has no price".to_owned(), "a price, tiers or windows", fix);
        }
        (plan.finish(), rates)
    }

    fn window(
        &mut self,
        place: Place,
        spec: &TariffSpec,
        window: &WindowSpec,
        (number, plan): (usize, &mut WeekPlan),
    ) {
        let WindowSpec { days, from_minute: from, to_minute: to, .. } = *window;
        if from >= DAY_MINUTES || to > DAY_MINUTES || from == to {
            let wrong = format!("the window goes from {} to {}", clock(from), clock(to));
            let expected = "two different times, 00:00 … 24:00";
            self.wrong(place, wrong, expected, "for the whole day write from 00:00 to 24:00");
            return;
        }
        if days.is_empty() {
            let fix = "name at least one day, or leave days out for every day";
            self.wrong(place.key("days"), "it has no days".to_owned(), "days of the week", fix);
        }
        let Some(overlap) = plan.take(days, from, to, number as u16) else { return };
        let other = spec.windows.get(usize::from(overlap.with)).map_or("", |window| &window.name);
        let wrong = if usize::from(overlap.with) == number {
            format!("it overlaps itself on {}", minute_of_week(overlap.minute))
        } else {
            format!("it overlaps the window {other:?} on {}", minute_of_week(overlap.minute))
        };
        self.wrong(
            place,
            wrong,
            "each hour in one window",
            "change the hours or the days of one of them",
        );
    }

    fn tiers(&mut self, place: Place, spec: &TariffSpec, price: &PriceSpec) -> Tiers {
        let specs = price.tiers();
        let key = if matches!(price, PriceSpec::Flat(_)) { "price" } else { "tiers" };
        if specs.is_empty() || specs.len() > TIERS_MAX {
            let wrong = format!("there are {} tiers", specs.len());
            self.wrong(place.key(key), wrong, "1 … 100", "write one tier for each price");
        }
        let mut below = Decimal::ZERO;
        let mut tiers = Vec::new();
        for (number, tier) in specs.iter().enumerate() {
            let at = if key == "tiers" { place.tier(number) } else { place };
            self.check_border(at, (number + 1 == specs.len(), tier), &mut below);
            tiers.push(Tier {
                up_to: tier.up_to,
                unit_price: self.unit_price(at, spec, tier.price),
            });
        }
        Tiers::new(tiers)
    }

    fn check_border(&mut self, place: Place, (last, tier): (bool, &TierSpec), below: &mut Decimal) {
        let expected = "borders that rise from tier to tier";
        match tier.up_to {
            Some(up_to) if up_to <= *below => {
                let wrong = format!("it goes up to {up_to}, which is not more than {below}");
                self.wrong(place.key("up_to"), wrong, expected, "put the tiers in rising order");
            }
            Some(up_to) => *below = up_to,
            None if !last => {
                let wrong = "it goes on without end, but is not the last tier".to_owned();
                self.wrong(place, wrong, expected, "add up_to, or put it last");
            }
            None => {}
        }
    }

    fn check_price(&mut self, place: Place, price: Decimal) {
        if price.is_sign_negative() && !price.is_zero() {
            let wrong = format!("the price is {price}");
            let fix = "write a price without a minus; corrections are negative quantities";
            self.wrong(place, wrong, "0 or more", fix);
        }
    }

    fn unit_price(&mut self, place: Place, spec: &TariffSpec, price: Decimal) -> Decimal {
        self.check_price(place.key("price"), price);
        if spec.per == 0 {
            return price;
        }
        exact::div(price, spec.per).unwrap_or_else(|| {
            let rounded = (price / Decimal::from(spec.per)).round_dp(15).normalize();
            let wrong = format!("{price} per {} is no decimal number with an end", spec.per);
            let fix = format!("choose a price that divides, or write \"{rounded}\" with per = 1");
            let expected = "a price of one unit that needs no rounding";
            self.wrong(place.key("price"), wrong, expected, &fix);
            price
        })
    }

    fn counter(
        &mut self,
        place: Place,
        spec: &TariffSpec,
        zone: &Arc<Zone>,
        rates: &[Tiers],
    ) -> Option<u16> {
        if !rates.iter().any(Tiers::depend) {
            return None;
        }
        let elsewhere = spec.currency != self.fallback.currency && !self.fallback.price.is_zero();
        if elsewhere && !rates.iter().all(Tiers::are_open) {
            let wrong = format!(
                "beyond its last tier the fallback prices, in {} instead of {}",
                self.fallback.currency, spec.currency
            );
            let fix =
                "add a last tier without up_to, or give the fallback this currency or the price 0";
            self.wrong(place.key("tiers"), wrong, "one money in one charge", fix);
        }
        let Some(period) = spec.period else {
            let fix = "write period = \"month\", \"day\" or \"year\"";
            self.wrong(
                place.key("period"),
                "tiers have no period".to_owned(),
                "over what they add up",
                fix,
            );
            return None;
        };
        let known =
            |counter: &Counter| counter.period == period && counter.zone.name() == zone.name();
        let number = self.counters.iter().position(known).unwrap_or_else(|| {
            self.counters.push(Counter { zone: Arc::clone(zone), period });
            self.counters.len() - 1
        });
        u16::try_from(number).ok()
    }
}

/// A minute of a day as clocks show it.
pub(super) fn clock(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// A minute of a week for people.
pub(super) fn minute_of_week(minute: u16) -> String {
    let day = Days::NAMES[usize::from(minute / DAY_MINUTES % 7)];
    format!("{day} {}", clock(minute % DAY_MINUTES))
}
