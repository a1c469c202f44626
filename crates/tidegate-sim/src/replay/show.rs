//! A comparison for people.

use super::{Comparison, Outcome, Replayed, Share};
use crate::report::{Cell, Table, text};
use std::fmt;
use tidegate_core::admission::MessagePriority;

// === impl Comparison ===

impl Comparison {
    /// Side by side: as it was, the same limits replayed, and the changed ones.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut columns = vec!["of", "what", "as recorded", "same limits"];
        columns.extend(self.changed.as_ref().map(|_| "changed limits"));
        let mut outcomes = vec![&self.as_recorded, &self.same.outcome];
        outcomes.extend(self.changed.as_ref().map(|changed| &changed.outcome));
        let mut rows = rows("all", &outcomes, |outcome| Some(&outcome.all));
        let came = |name: &&str| self.as_recorded.by_priority.contains_key(name);
        for name in MessagePriority::ALL.iter().map(|priority| priority.name()).filter(came) {
            rows.extend(self::rows(name, &outcomes, |outcome| outcome.by_priority.get(name)));
        }
        Table {
            title: "What becomes of the requests that came".to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows,
        }
    }

    /// Notes that a reader of the table needs.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "What was refused then takes a time that is drawn from those of its priority that were \
             admitted. Clients that would have come back, or not, are not simulated."
                .to_owned(),
        ];
        if self.dry_run {
            notes.push(
                "It was a dry run: nothing was refused then, so the same limits replayed say what \
                 they would have done."
                    .to_owned(),
            );
        }
        if self.lost > 0 {
            notes.push(format!(
                "{} requests were decided and not written down: there was more load than this says.",
                self.lost
            ));
        }
        if self.unended > 0 {
            notes.push(format!(
                "{} requests had not ended when the recording did, and are not in it.",
                self.unended
            ));
        }
        match self.end.as_deref() {
            Some("time") => {}
            Some(end) => notes.push(format!("The recording ended early: {end}.")),
            None => notes.push("The recording broke off: what it had is replayed.".to_owned()),
        }
        notes
    }
}

fn rows(
    of: &str,
    outcomes: &[&Outcome],
    share: impl Fn(&Outcome) -> Option<&Share>,
) -> Vec<Vec<Cell>> {
    let count = |what: &str, count: fn(&Share) -> u64| {
        let counts = outcomes.iter().map(|outcome| Cell::Count(share(outcome).map_or(0, count)));
        let names = [of, what].map(|name| Cell::Text(name.to_owned()));
        names.into_iter().chain(counts).collect::<Vec<_>>()
    };
    let mut rows = vec![
        count("came", |share| share.asked),
        count("admitted", |share| share.admitted),
        count("refused: global_limit", |share| share.global_limit),
        count("refused: priority_limit", |share| share.priority_limit),
        count("refused by others", |share| share.others),
        count("in flight, most", |share| share.in_flight_max),
    ];
    let mean = |outcome: &&Outcome| Cell::number(share(outcome).map(|s| s.in_flight_mean), 1);
    let names = [of, "in flight, mean"].map(|name| Cell::Text(name.to_owned()));
    rows.push(names.into_iter().chain(outcomes.iter().map(mean)).collect());
    rows
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} requests in {:.1} s", self.requests, self.lasted_s)?;
        writeln!(f, "limits then:  {}", self.same.limits)?;
        if let Some(Replayed { limits, .. }) = &self.changed {
            writeln!(f, "changed to:   {limits}")?;
        }
        writeln!(f, "\n{}", text::table(&self.table()))?;
        let Replayed { same_decision, let_in_difference, .. } = &self.same;
        writeln!(
            f,
            "The same limits replayed decide as it was in {:.1} % of cases, and let in {:+.1} % of what \
             came.",
            same_decision * 100.0,
            let_in_difference * 100.0
        )?;
        self.notes().iter().try_for_each(|note| writeln!(f, "Note: {note}"))
    }
}
