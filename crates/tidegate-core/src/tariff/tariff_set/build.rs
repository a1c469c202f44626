use super::compiled::{Counter, Tariff};
use crate::tariff::calendar::{DAY_MINUTES, Days, Segment, Week, WeekPlan, Zone};
use crate::tariff::error::{Location, TariffError};
use crate::tariff::exact;
use crate::tariff::spec::{FallbackSpec, PriceSpec, TariffSpec, Tenants, TierSpec, WindowSpec};
use crate::tariff::tiers::{Tier, Tiers};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Limits: a larger file is more likely a mistake than written by a person, and numbers stay small.
const TARIFFS_MAX: usize = 100_000;
const WINDOWS_MAX: usize = 500;
const TIERS_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 255;
const PER_MAX: u64 = 1_000_000_000_000_000;

/// Tariffs, each checked by itself. A missing one has an error.
pub(in crate::tariff) struct Built {
    pub(in crate::tariff) tariffs: Vec<Option<Tariff>>,
    pub(in crate::tariff) counters: Vec<Counter>,
    pub(in crate::tariff) errors: Vec<TariffError>,
}

/// Builds tariffs one by one and collects every error.
struct Builder<'a> {
    fallback: &'a FallbackSpec,
    errors: Vec<TariffError>,
    zones: BTreeMap<String, Option<Arc<Zone>>>,
    counters: Vec<Counter>,
    names: BTreeSet<&'a str>,
}

pub(in crate::tariff) fn build(specs: &[TariffSpec], fallback: &FallbackSpec) -> Built {
    let mut builder = Builder {
        fallback,
        errors: Vec::new(),
        zones: BTreeMap::new(),
        counters: Vec::new(),
        names: BTreeSet::from([fallback.name.as_str()]),
    };
    builder.check_whole(specs);
    let tariffs =
        specs.iter().enumerate().map(|(number, spec)| builder.tariff(number, spec)).collect();
    Built { tariffs, counters: builder.counters, errors: builder.errors }
}

// === impl Builder ===

impl<'a> Builder<'a> {
    fn wrong(&mut self, location: Location, wrong: String, expected: &str, fix: &str) {
        self.errors.push(TariffError::new(location, wrong, expected, fix));
    }

    fn check_whole(&mut self, specs: &[TariffSpec]) {
        let location = Location::default();
        self.check_name(location.key("name"), &self.fallback.name);
        self.check_price(location.key("price"), self.fallback.price);
        if specs.len() > TARIFFS_MAX {
            let wrong = format!("there are {} tariffs", specs.len());
            self.wrong(location, wrong, "at most 100000", "list several tenants in one tariff");
        }
    }

    fn tariff(&mut self, number: usize, spec: &'a TariffSpec) -> Option<Tariff> {
        let location = Location::tariff(number);
        self.check_name(location.key("name"), &spec.name);
        if !self.names.insert(&spec.name) {
            let wrong = format!("the name {:?} is taken", spec.name);
            let expected = "a name that no other tariff has, nor the fallback";
            self.wrong(location.key("name"), wrong, expected, "give one of them another name");
        }
        self.check_tenants(location.key("tenants"), &spec.tenants);
        self.check_meter(location.key("meter"), &spec.meter);
        if spec.per == 0 || spec.per > PER_MAX {
            let wrong = format!("per is {}", spec.per);
            self.wrong(
                location.key("per"),
                wrong,
                "1 … 10^15 units",
                "say for how many units a price is",
            );
        }
        let zone = self.zone(location.key("time_zone"), &spec.time_zone)?;
        let effective = self.effective(location, spec, &zone);
        let (week, rates) = self.rates(location, spec);
        let counter = self.counter(location, spec, &zone, &rates);
        Some(Tariff { name: spec.name.as_str().into(), effective, zone, week, rates, counter })
    }

    fn check_name(&mut self, location: Location, name: &str) {
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
            let wrong = format!("{name:?} is no name");
            self.wrong(location, wrong, "1 … 255 bytes of text on one line", "write a short name");
        }
    }

    fn check_tenants(&mut self, location: Location, tenants: &Tenants) {
        let Tenants::Listed(names) = tenants else { return };
        if names.is_empty() {
            let fix = "name at least one tenant, or write \"*\" for everyone";
            self.wrong(
                location,
                "no tenant is listed".to_owned(),
                "names of tenants, or \"*\"",
                fix,
            );
        }
        let mut seen = BTreeSet::new();
        for name in names {
            if name == "*" {
                let fix = "write tenants = \"*\" for everyone, or leave the * out";
                self.wrong(location, "\"*\" is in a list".to_owned(), "names of tenants", fix);
            } else {
                self.check_name(location, name);
            }
            if !seen.insert(name) {
                let wrong = format!("the tenant {name:?} is listed twice");
                self.wrong(location, wrong, "each tenant once", "remove one of them");
            }
        }
    }

    fn check_meter(&mut self, location: Location, meter: &str) {
        self.check_name(location, meter);
        let stem = match meter.strip_suffix('*') {
            Some(stem) if stem.is_empty() || stem.ends_with('.') => stem,
            _ => meter,
        };
        if stem.contains('*') {
            let wrong = format!("the meter {meter:?} has a * that stands for nothing");
            let expected = "a meter's name, a prefix such as \"tokens.*\", or \"*\"";
            self.wrong(
                location,
                wrong,
                expected,
                "put the * behind the last dot, or write the whole name",
            );
        }
    }

    fn zone(&mut self, location: Location, name: &str) -> Option<Arc<Zone>> {
        let zone = self
            .zones
            .entry(name.to_owned())
            .or_insert_with(|| Zone::find(name).ok().map(Arc::new))
            .clone();
        if zone.is_none() {
            let wrong = format!("{name:?} is no time zone");
            self.wrong(
                location,
                wrong,
                "an IANA name",
                "write a name such as \"Europe/Berlin\" or \"UTC\"",
            );
        }
        zone
    }

    fn effective(&mut self, location: Location, spec: &TariffSpec, zone: &Zone) -> Segment {
        let from_ns = spec.effective_from.map_or(i64::MIN, |at| at.in_zone(zone));
        let until_ns = spec.effective_until.map_or(i64::MAX, |at| at.in_zone(zone));
        if let (Some(from), Some(until)) = (spec.effective_from, spec.effective_until)
            && from_ns >= until_ns
        {
            let wrong = format!("it ends on {until}, which is not after it begins on {from}");
            let fix = "exchange the two, or correct one; the end itself is not included";
            self.wrong(location.key("effective_until"), wrong, "an end after the beginning", fix);
        }
        Segment { from_ns, until_ns }
    }

    fn rates(&mut self, location: Location, spec: &TariffSpec) -> (Week, Vec<Tiers>) {
        let mut plan = WeekPlan::new();
        let mut rates = Vec::new();
        if spec.windows.len() > WINDOWS_MAX {
            let wrong = format!("there are {} windows", spec.windows.len());
            self.wrong(location, wrong, "at most 500", "leave out days that are the same");
            return (plan.finish(), rates);
        }
        for (number, window) in spec.windows.iter().enumerate() {
            self.window(location.window(number), spec, window, (number, &mut plan));
            rates.push(self.tiers(location.window(number), spec, &window.price));
        }
        if let Some(price) = &spec.price {
            plan.fill(rates.len() as u16);
            rates.push(self.tiers(location, spec, price));
        } else if spec.windows.is_empty() {
            let fix = "write price = \"…\", tiers = […], or at least one [[tariff.window]]";
            self.wrong(location, "it has no price".to_owned(), "a price, tiers or windows", fix);
        }
        (plan.finish(), rates)
    }

    fn window(
        &mut self,
        location: Location,
        spec: &TariffSpec,
        window: &WindowSpec,
        (number, plan): (usize, &mut WeekPlan),
    ) {
        let WindowSpec { days, from_minute: from, to_minute: to, .. } = *window;
        if from >= DAY_MINUTES || to > DAY_MINUTES || from == to {
            let wrong = format!("the window goes from {} to {}", clock(from), clock(to));
            let expected = "two different times, 00:00 … 24:00";
            self.wrong(location, wrong, expected, "for the whole day write from 00:00 to 24:00");
            return;
        }
        if days.is_empty() {
            let fix = "name at least one day, or leave days out for every day";
            self.wrong(location.key("days"), "it has no days".to_owned(), "days of the week", fix);
        }
        let Some(overlap) = plan.take(days, from, to, number as u16) else { return };
        let other = spec.windows.get(usize::from(overlap.with)).map_or("", |window| &window.name);
        let wrong = if usize::from(overlap.with) == number {
            format!("it overlaps itself on {}", minute_of_week(overlap.minute))
        } else {
            format!("it overlaps the window {other:?} on {}", minute_of_week(overlap.minute))
        };
        self.wrong(
            location,
            wrong,
            "each hour in one window",
            "change the hours or the days of one of them",
        );
    }

    fn tiers(&mut self, location: Location, spec: &TariffSpec, price: &PriceSpec) -> Tiers {
        let specs = price.tiers();
        let key = if matches!(price, PriceSpec::Flat(_)) { "price" } else { "tiers" };
        if specs.is_empty() || specs.len() > TIERS_MAX {
            let wrong = format!("there are {} tiers", specs.len());
            self.wrong(location.key(key), wrong, "1 … 100", "write one tier for each price");
        }
        let mut below = Decimal::ZERO;
        let mut tiers = Vec::new();
        for (number, tier) in specs.iter().enumerate() {
            let at = if key == "tiers" { location.tier(number) } else { location };
            self.check_border(at, (number + 1 == specs.len(), tier), &mut below);
            tiers.push(Tier {
                up_to: tier.up_to,
                unit_price: self.unit_price(at, spec, tier.price),
            });
        }
        Tiers::new(tiers)
    }

    fn check_border(
        &mut self,
        location: Location,
        (last, tier): (bool, &TierSpec),
        below: &mut Decimal,
    ) {
        let expected = "borders that rise from tier to tier";
        match tier.up_to {
            Some(up_to) if up_to <= *below => {
                let wrong = format!("it goes up to {up_to}, which is not more than {below}");
                self.wrong(location.key("up_to"), wrong, expected, "put the tiers in rising order");
            }
            Some(up_to) => *below = up_to,
            None if !last => {
                let wrong = "it goes on without end, but is not the last tier".to_owned();
                self.wrong(location, wrong, expected, "add up_to, or put it last");
            }
            None => {}
        }
    }

    fn check_price(&mut self, location: Location, price: Decimal) {
        if price.is_sign_negative() && !price.is_zero() {
            let wrong = format!("the price is {price}");
            let fix = "write a price without a minus; corrections are negative quantities";
            self.wrong(location, wrong, "0 or more", fix);
        }
    }

    fn unit_price(&mut self, location: Location, spec: &TariffSpec, price: Decimal) -> Decimal {
        self.check_price(location.key("price"), price);
        if spec.per == 0 {
            return price;
        }
        exact::div(price, spec.per).unwrap_or_else(|| {
            let rounded = (price / Decimal::from(spec.per)).round_dp(15).normalize();
            let wrong = format!("{price} per {} is no decimal number with an end", spec.per);
            let fix = format!("choose a price that divides, or write \"{rounded}\" with per = 1");
            let expected = "a price of one unit that needs no rounding";
            self.wrong(location.key("price"), wrong, expected, &fix);
            price
        })
    }

    fn counter(
        &mut self,
        location: Location,
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
            self.wrong(location.key("tiers"), wrong, "one money in one charge", fix);
        }
        let Some(period) = spec.period else {
            let fix = "write period = \"month\", \"day\" or \"year\"";
            self.wrong(
                location.key("period"),
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

/// Minute of a day as `hh:mm`.
pub(in crate::tariff) fn clock(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// Minute of a week as `day hh:mm`.
pub(in crate::tariff) fn minute_of_week(minute: u16) -> String {
    let day = Days::NAMES[usize::from(minute / DAY_MINUTES % 7)];
    format!("{day} {}", clock(minute % DAY_MINUTES))
}
