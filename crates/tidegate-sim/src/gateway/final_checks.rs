//! Checks that run at intervals and at the end.

use super::model::{Broken, State, Upstream};
use super::simulation::Simulation;
use crate::report::{Cell, Findings, Table};

impl Simulation<'_> {
    /// Checks that the counts of all parts add up to the requests under way.
    pub(super) fn check_sums(&self) -> Result<(), Broken> {
        self.checks.totals(&self.trackers.gateway)?;
        let differs = |what: &str, found: u64, counted: u64| {
            let text = format!("{found} {what}, and {counted} are counted");
            if found == counted { Ok(()) } else { Err(Broken::new(Broken::CONSERVED, text)) }
        };
        let waiting = self.waiting.len() as u64;
        differs("are queued", waiting, self.checks.in_state(State::Queued))?;
        let sent = self.checks.in_state(State::Sent);
        differs("are charged to upstreams", self.fleet.outstanding(), sent)?;
        differs("are known", self.requests.len() as u64, self.under_way())?;
        for (number, upstream) in self.upstreams.iter().enumerate() {
            if let Some((running, slots)) = upstream.beyond() {
                let text = format!("upstream {number} executes {running} with {slots} slots");
                return Err(Broken::new(Broken::SLOTS, text));
            }
            let sent = self.checks.with_upstream(number);
            if !upstream.trouble.cut {
                let there = upstream.running() as usize + upstream.queued();
                differs("are with an upstream", there as u64, sent as u64)?;
            }
        }
        Ok(())
    }

    fn under_way(&self) -> u64 {
        [State::Away, State::Control, State::Queued, State::Sent]
            .map(|state| self.checks.in_state(state))
            .iter()
            .sum()
    }

    /// Checks at the end that nothing is held and no upstream looks busy.
    pub(super) fn check_end(&self) -> Result<(), Broken> {
        self.check_sums()?;
        if self.requests.len() > 0 {
            let text = format!("{} requests never end", self.requests.len());
            return Err(Broken::new(Broken::CONSERVED, text));
        }
        self.checks.nothing_held(self.trackers)?;
        match self.fleet.not_free() {
            Some(upstream) => {
                let text = format!("upstream {upstream} has nothing to do and is busy");
                Err(Broken::new(Broken::LATCHED, text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn into_findings(self) -> Findings {
        let mut findings = self.recorder.conclude();
        let row = |(number, upstream): (usize, &Upstream)| {
            let totals = upstream.totals;
            let counts = [totals.sent, totals.good, totals.failed, totals.refused];
            let name = Cell::Text(format!("upstream-{number}"));
            [name].into_iter().chain(counts.map(Cell::Count)).collect()
        };
        findings.tables.push(Table {
            title: "Requests by upstream, each attempt".to_owned(),
            columns: ["upstream", "sent", "good", "failed", "refused"].map(str::to_owned).to_vec(),
            rows: self.upstreams.iter().enumerate().map(row).collect(),
        });
        findings.decisions = self.decisions;
        findings.notes.push(format!(
            "{} decisions in {} events of virtual time, and at each of them every invariant held",
            self.decisions, self.events
        ));
        findings
    }
}
