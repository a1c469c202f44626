use std::collections::BTreeMap;

/// Index of the tariffs by tenant and meter: the tenant's own before those for all, an exact name before the
/// longest prefix. Tariffs are identified by their numbers.
#[derive(Debug, Default)]
pub(in crate::tariff) struct TariffIndex {
    own: BTreeMap<Box<str>, Meters>,
    all: Meters,
}

#[derive(Debug, Default)]
struct Meters {
    exact: BTreeMap<Box<str>, Vec<u32>>,
    /// Prefixes with their final dot; the empty prefix matches all meters.
    below: BTreeMap<Box<str>, Vec<u32>>,
}

// === impl TariffIndex ===

impl TariffIndex {
    /// Adds a tariff for a tenant, or for all.
    pub(in crate::tariff) fn add(&mut self, tenant: Option<&str>, pattern: &str, tariff: u32) {
        let meters = match tenant {
            Some(tenant) => self.own.entry(tenant.into()).or_default(),
            None => &mut self.all,
        };
        let names = match pattern.strip_suffix('*') {
            Some(prefix) => meters.below.entry(prefix.into()),
            None => meters.exact.entry(pattern.into()),
        };
        names.or_default().push(tariff);
    }

    /// All tariffs for a tenant's meter, by precedence.
    pub(in crate::tariff) fn candidates(&self, tenant: &str, meter: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for meters in self.own.get(tenant).into_iter().chain([&self.all]) {
            meters.collect(meter, &mut found);
        }
        found
    }

    /// All tariffs for a pattern, by precedence: the candidates of a meter without a more exact match.
    pub(in crate::tariff) fn behind(&self, tenant: Option<&str>, pattern: &str) -> Vec<u32> {
        let own = tenant.and_then(|tenant| self.own.get(tenant));
        let mut found = Vec::new();
        for meters in own.into_iter().chain([&self.all]) {
            match pattern.strip_suffix('*') {
                Some(prefix) => meters.collect_below(prefix, &mut found),
                None => meters.collect(pattern, &mut found),
            }
        }
        found
    }
}

// === impl Meters ===

impl Meters {
    fn collect(&self, meter: &str, found: &mut Vec<u32>) {
        found.extend(self.exact.get(meter).into_iter().flatten());
        self.collect_below(meter, found);
    }

    fn collect_below(&self, name: &str, found: &mut Vec<u32>) {
        let dots = name.rmatch_indices('.').map(|(dot, _)| &name[..=dot]);
        for prefix in dots.chain([""]) {
            found.extend(self.below.get(prefix).into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_wins_over_the_longest_prefix_and_ones_own_over_everyone_s() {
        let mut index = TariffIndex::default();
        let patterns = ["*", "a.*", "a.b.*", "a.b.c"];
        for (number, pattern) in (0..).zip(patterns) {
            index.add(None, pattern, number);
            index.add(Some("t"), pattern, number + 10);
        }
        assert_eq!(index.candidates("t", "a.b.c"), [13, 12, 11, 10, 3, 2, 1, 0]);
        assert_eq!(index.candidates("u", "a.b.c"), [3, 2, 1, 0]);
        assert_eq!(index.candidates("u", "a.x"), [1, 0]);
        assert_eq!(index.candidates("u", "a"), [0]);
        assert_eq!(index.candidates("u", ""), [0]);
        assert_eq!(index.behind(Some("t"), "a.b.*"), [12, 11, 10, 2, 1, 0]);
    }
}
