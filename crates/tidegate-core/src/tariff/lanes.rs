use std::collections::BTreeMap;

/// Which tariffs a tenant's meter may be priced by: an exact name before the longest prefix, the tenant's own
/// before everyone's. Tariffs are told by their numbers.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    own: BTreeMap<Box<str>, Meters>,
    all: Meters,
}

#[derive(Debug, Default)]
struct Meters {
    exact: BTreeMap<Box<str>, Vec<u32>>,
    /// With the dot at the end; all meters are below the empty name.
    below: BTreeMap<Box<str>, Vec<u32>>,
}

// === impl Lanes ===

impl Lanes {
    /// Adds a tariff for a tenant, or for everyone.
    pub(super) fn add(&mut self, tenant: Option<&str>, pattern: &str, tariff: u32) {
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

    /// All tariffs for a tenant's meter, those that win first.
    pub(super) fn candidates(&self, tenant: &str, meter: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for meters in self.own.get(tenant).into_iter().chain([&self.all]) {
            meters.collect(meter, &mut found);
        }
        found
    }

    /// All tariffs for a pattern, those that win first: what a meter gets that nothing more exact names.
    pub(super) fn behind(&self, tenant: Option<&str>, pattern: &str) -> Vec<u32> {
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
        let mut lanes = Lanes::default();
        let patterns = ["*", "a.*", "a.b.*", "a.b.c"];
        for (number, pattern) in (0..).zip(patterns) {
            lanes.add(None, pattern, number);
            lanes.add(Some("t"), pattern, number + 10);
        }
        assert_eq!(lanes.candidates("t", "a.b.c"), [13, 12, 11, 10, 3, 2, 1, 0]);
        assert_eq!(lanes.candidates("u", "a.b.c"), [3, 2, 1, 0]);
        assert_eq!(lanes.candidates("u", "a.x"), [1, 0]);
        assert_eq!(lanes.candidates("u", "a"), [0]);
        assert_eq!(lanes.candidates("u", ""), [0]);
        assert_eq!(lanes.behind(Some("t"), "a.b.*"), [12, 11, 10, 2, 1, 0]);
    }
}
