use crate::scenario::{Class, Fault, Phase, Scenario, What};
use crate::shell::word;
use std::fmt;

/// Edits that reduce a scenario, as flags of `tidegate sim`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edits {
    /// The new end, in seconds; nothing before it changes.
    pub until_s: Option<f64>,
    /// Faults that are left out, by their index in the file, counted from 0.
    pub without_faults: Vec<usize>,
    /// Classes that do not come, by name.
    pub without_classes: Vec<String>,
    /// The factor of all rates.
    pub rate: f64,
    /// The number of upstreams, if it is reduced.
    pub upstreams: Option<u16>,
}

// === impl Edits ===

impl Default for Edits {
    fn default() -> Self {
        Self {
            until_s: None,
            without_faults: Vec::new(),
            without_classes: Vec::new(),
            rate: 1.0,
            upstreams: None,
        }
    }
}

impl Edits {
    /// The scenario that is left. Expectations of what is no longer there are dropped.
    #[must_use]
    pub fn apply(&self, scenario: &Scenario) -> Scenario {
        let mut edited = scenario.clone();
        let kept = edited.faults.iter().enumerate();
        let kept = kept.filter(|(index, _)| !self.without_faults.contains(index));
        edited.faults = kept.map(|(_, fault)| fault.clone()).collect();
        edited.classes.retain(|class| !self.without_classes.contains(&class.name));
        if self.rate != 1.0 {
            edited.classes.iter_mut().for_each(|class| class.scale(self.rate));
        }
        if let Some(count) = self.upstreams {
            edited.keep_upstreams(count);
        }
        if let Some(until_s) = self.until_s {
            edited.cut_off(until_s);
        }
        if *self != Self::default() {
            edited.drop_expectations();
        }
        edited
    }

    /// Returns `true` if it changes nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Edits {
    /// Formats the edits as flags, each with a space before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(until_s) = self.until_s {
            write!(f, " --until {until_s}")?;
        }
        for index in &self.without_faults {
            write!(f, " --without-fault {index}")?;
        }
        for name in &self.without_classes {
            // What begins with a dash would be taken for a flag if it stood alone.
            let gap = if name.starts_with('-') { '=' } else { ' ' };
            write!(f, " --without-class{gap}{}", word(name))?;
        }
        if self.rate != 1.0 {
            write!(f, " --rate {}", self.rate)?;
        }
        if let Some(count) = self.upstreams {
            write!(f, " --upstreams {count}")?;
        }
        Ok(())
    }
}

// === impl Scenario ===

impl Scenario {
    /// Ends at this time; phases and faults are when they were.
    fn cut_off(&mut self, until_s: f64) {
        if until_s >= self.duration_s {
            return;
        }
        let spans = self.phase_spans();
        let phase = |(index, phase): (usize, &Phase)| {
            let part = spans[index].until_s.min(until_s) - spans[index].from_s;
            (part > 0.0).then(|| Phase { part, ..phase.clone() })
        };
        self.phases = self.phases.iter().enumerate().filter_map(phase).collect();
        let fault = |fault: &Fault| {
            let until_s = fault.until_s.min(until_s);
            (fault.from_s < until_s).then(|| Fault { until_s, ..fault.clone() })
        };
        self.faults = self.faults.iter().filter_map(fault).collect();
        self.settle_s = self.settle_s.min(until_s);
        self.duration_s = until_s;
        self.short = None;
    }

    /// Keeps the first so many upstreams.
    fn keep_upstreams(&mut self, count: u16) {
        let Some(upstreams) = &mut self.upstreams else { return };
        upstreams.count = upstreams.count.min(count.max(1));
        let count = upstreams.count;
        self.faults.retain_mut(|fault| {
            // A fault without numbers affects all upstreams; one whose upstreams are gone affects none.
            let everybody = fault.at.is_empty();
            fault.at.retain(|number| *number < count);
            everybody || !fault.at.is_empty()
        });
    }

    /// Removes expectations of parts that are no longer there.
    fn drop_expectations(&mut self) {
        let whole = self.clone();
        let names: Vec<_> = whole.phase_spans().into_iter().map(|span| span.name).collect();
        let there = |phase: &Option<String>| phase.as_ref().is_none_or(|name| names.contains(name));
        self.expectations.retain(|expected| {
            let has_fault = expected.what != What::RecoveryS || !whole.faults.is_empty();
            let trial = Scenario { expectations: vec![expected.clone()], ..whole.clone() };
            let of_someone = trial.errors().is_empty();
            there(&expected.phase) && there(&expected.against) && has_fault && of_someone
        });
    }
}

// === impl Class ===

impl Class {
    fn scale(&mut self, rate: f64) {
        self.share = self.share.map(|share| share * rate);
        self.per_s = self.per_s.map(|per_s| per_s * rate);
    }
}
