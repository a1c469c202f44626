//! What is looked at now and then, and at the end.

use super::check::Broken;
use super::request::State;
use super::simulation::Simulation;
use crate::report::{Cell, Findings, Table};

impl Simulation<'_> {
    /// What each part says of itself, added up, is what is under way.
    pub(super) fn check_sums(&self) -> Result<(), Broken> {
        self.checks.totals(&self.trackers.gateway)?;
        let differs = |what: &str, found: u64, counted: u64| {
            let text = format!("{found} {what}, and {counted} are counted");
            if found == counted { Ok(()) } else { Err(Broken::new(Broken::CONSERVED, text)) }
        };
        let waiting: usize = self.lines.iter().map(|line| line.waiting_now()).sum();
        differs("wait in lines", waiting as u64, self.checks.in_state(State::Line))?;
        let placed = self.checks.in_state(State::Line) + self.checks.in_state(State::Sent);
        differs("are charged to workers", self.fleet.outstanding(), placed)?;
        differs("are known", self.requests.len() as u64, self.under_way())?;
        for (number, (worker, line)) in self.workers.iter().zip(&self.lines).enumerate() {
            if let Some((running, places)) = worker.beyond() {
                let text = format!("worker {number} works on {running} with {places} places");
                return Err(Broken::new(Broken::PLACES, text));
            }
            let sent = self.checks.with_worker(number);
            if line.has_slots() {
                differs("have a slot", line.sent() as u64, sent as u64)?;
            }
            if !worker.trouble.cut {
                let there = worker.running() as usize + worker.waiting();
                differs("are with a worker", there as u64, sent as u64)?;
            }
        }
        Ok(())
    }

    fn under_way(&self) -> u64 {
        [State::Away, State::Control, State::Line, State::Sent]
            .map(|state| self.checks.in_state(state))
            .iter()
            .sum()
    }

    /// When all is over: nothing is held, and nobody looks busy.
    pub(super) fn check_end(&self) -> Result<(), Broken> {
        self.check_sums()?;
        if self.requests.len() > 0 {
            let text = format!("{} requests never end", self.requests.len());
            return Err(Broken::new(Broken::CONSERVED, text));
        }
        self.checks.nothing_held(self.trackers)?;
        match self.fleet.not_free() {
            Some((worker, priority)) => {
                let text = format!("worker {worker} has nothing to do and is busy for {priority}");
                Err(Broken::new(Broken::LATCHED, text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn into_findings(self) -> Findings {
        let mut findings = self.recorder.conclude();
        let row = |(number, worker): (usize, &super::worker::Worker)| {
            let totals = worker.totals;
            let counts = [totals.sent, totals.good, totals.failed, totals.refused];
            let name = Cell::Text(format!("worker-{number}"));
            [name].into_iter().chain(counts.map(Cell::Count)).collect()
        };
        findings.tables.push(Table {
            title: "Requests by worker, each attempt".to_owned(),
            columns: ["worker", "sent", "good", "failed", "refused"].map(str::to_owned).to_vec(),
            rows: self.workers.iter().enumerate().map(row).collect(),
        });
        findings.decisions = self.decisions;
        findings.notes.push(format!(
            "{} decisions in {} events of virtual time, and at each of them every invariant held",
            self.decisions, self.events
        ));
        findings
    }
}
