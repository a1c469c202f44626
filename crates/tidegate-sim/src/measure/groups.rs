use super::latency::Latencies;
use crate::scenario::Class;
use tidegate_core::admission::MessagePriority;

/// Counts of one class in the judged time of one phase.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// Requests that were due then.
    pub(super) offered: u64,
    /// The ends of these requests.
    pub(super) good: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Good answers that ended then, whenever they were due.
    pub(super) good_then: u64,
    /// Of the good ones among those that were due then.
    pub(super) latencies: Latencies,
}

/// Some of all requests, by what expectations call them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    classes: Vec<usize>,
    /// Only answers of upstreams that no fault names.
    pub(super) healthy: bool,
}

// === impl Group ===

impl Group {
    /// Everyone who asks for an upstream, each class, each priority and each tenant, in this order, and the
    /// answers of healthy upstreams.
    pub(super) fn all(classes: &[Class], with_healthy: bool) -> Vec<Self> {
        let mut groups = Vec::new();
        let mut add = |name: String, healthy: bool, is_in: &dyn Fn(&Class) -> bool| {
            let members = classes.iter().enumerate().filter(|(_, class)| is_in(class));
            let members: Vec<usize> = members.map(|(index, _)| index).collect();
            if !groups.iter().any(|group: &Self| group.name == name) {
                groups.push(Self { name, classes: members, healthy });
            }
        };
        add("all".to_owned(), false, &|class| class.priority != MessagePriority::Critical);
        for class in classes {
            add(class.name.clone(), false, &|other| other.name == class.name);
        }
        for class in classes {
            let is_in = |other: &Class| other.priority == class.priority;
            add(format!("priority:{}", class.priority), false, &is_in);
        }
        for class in classes.iter().filter(|class| class.tenant.is_some()) {
            let name = class.tenant.clone().unwrap_or_default();
            add(format!("tenant:{name}"), false, &|other| other.tenant == class.tenant);
        }
        if with_healthy {
            add("healthy".to_owned(), true, &|_| true);
        }
        groups
    }

    /// Returns the sum of these phases.
    pub(super) fn sum(
        &self,
        cells: &[Cell],
        classes: usize,
        phases: std::ops::Range<usize>,
    ) -> Cell {
        let mut sum = Cell::new();
        for phase in phases {
            for class in &self.classes {
                let at = (phase * classes + class) * 2;
                let cells = cells.iter().skip(at).take(2).skip(usize::from(self.healthy));
                cells.for_each(|cell| sum.add(cell));
            }
        }
        sum
    }

    pub(super) fn has(&self, class: usize) -> bool {
        self.classes.contains(&class)
    }
}

// === impl Cell ===

impl Cell {
    pub(super) const fn new() -> Self {
        let latencies = Latencies::new();
        Self { offered: 0, good: 0, refused: 0, failed: 0, good_then: 0, latencies }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.good += other.good;
        self.refused += other.refused;
        self.failed += other.failed;
        self.good_then += other.good_then;
        self.latencies.add(&other.latencies);
    }
}
