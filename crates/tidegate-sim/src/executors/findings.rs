use super::Policy;
use super::measure::at_percent;
use crate::report::{Cell, Chart, Findings, Line, Table};
use crate::scenario::{PhaseSpan, Scenario, What};

/// The run of a scenario with one placement, simulated or real. All times are in seconds from the start.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementRun {
    /// The placement policy.
    pub policy: Policy,
    /// Every task that was due.
    pub tasks: Vec<TaskRun>,
    /// The begin and end of each execution.
    pub ran_s: Vec<(f64, f64)>,
    /// Counts in the judged time of each phase.
    pub counts: Vec<PhaseCounts>,
    /// Tasks that never ended.
    pub lost: u64,
    /// Attempts that were started twice; of the seed's loop, which numbers none, tasks.
    pub twice: u64,
    /// Now and then: how many waited and how many ran.
    pub samples: Vec<Sample>,
    /// Decisions of the shipped code, where that is known.
    pub decisions: u64,
}

/// The due time of a task, and its first start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskRun {
    /// The due time.
    pub due_s: f64,
    /// The first start; `None` if it was never started.
    pub started_s: Option<f64>,
}

/// Counts in the judged time of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// Requests and replies between managers and executors; `None` where they are not counted.
    pub messages: Option<u64>,
    /// Submissions that were refused because the executor was full.
    pub wasted: u64,
}

/// Queued and running tasks at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The time.
    pub at_s: f64,
    /// Tasks that were due and did not run.
    pub waiting: u64,
    /// Tasks that ran.
    pub running: u64,
}

/// The judged time of one phase or of all, and what one placement did in it.
struct Judged<'a> {
    scenario: &'a Scenario,
    run: &'a PlacementRun,
    /// The phases and their judged times.
    windows: Vec<(usize, f64, f64)>,
}

/// Figures, a table and charts of what each placement made of a scenario.
///
/// A wait is that of a task which was due in the judged time: until its start, or until the load is over where it
/// had none by then.
#[must_use]
pub fn findings(scenario: &Scenario, runs: &[PlacementRun]) -> Findings {
    let mut found = Findings::default();
    let spans = scenario.phase_spans();
    let mut rows = Vec::new();
    for run in runs {
        let name = run.policy.to_string();
        let all = Judged::new(scenario, run, &spans, None);
        all.figures(&mut found, &name, None);
        found.figure(What::Lost, &name, None, run.lost as f64);
        found.figure(What::Twice, &name, None, run.twice as f64);
        found.decisions += run.decisions;
        if spans.len() > 1 {
            for (number, span) in spans.iter().enumerate() {
                let judged = Judged::new(scenario, run, &spans, Some(number));
                judged.figures(&mut found, &name, Some(&span.name));
                rows.push(row(&found, &name, Some(&span.name), judged.due().count()));
            }
        }
        rows.push(row(&found, &name, None, all.due().count()));
    }
    found.tables.push(table(spans.len() > 1, rows));
    let chart = |title: &str, value: fn(&Sample) -> u64| Chart {
        title: title.to_owned(),
        unit: "tasks".to_owned(),
        lines: runs.iter().map(|run| line(run, value)).collect(),
    };
    found.charts.push(chart("Tasks that wait", |sample| sample.waiting));
    found.charts.push(chart("Tasks that run", |sample| sample.running));
    found
}

fn line(run: &PlacementRun, value: fn(&Sample) -> u64) -> Line {
    let point = |sample: &Sample| (sample.at_s, Some(value(sample) as f64));
    Line { name: run.policy.to_string(), points: run.samples.iter().map(point).collect() }
}

fn row(found: &Findings, name: &str, phase: Option<&str>, due: usize) -> Vec<Cell> {
    let number = |what, digits| Cell::number(found.value(what, name, phase), digits);
    let percent = |what| Cell::number(found.value(what, name, phase).map(|it| it * 100.0), 1);
    let count =
        |what| found.value(what, name, phase).map_or(Cell::None, |it| Cell::Count(it as u64));
    vec![
        Cell::Text(name.to_owned()),
        Cell::Text(phase.unwrap_or("all").to_owned()),
        Cell::Count(due as u64),
        percent(What::GoodputOfOffered),
        number(What::WaitMeanMs, 1),
        number(What::WaitP99Ms, 1),
        number(What::WastedPerTask, 2),
        number(What::MessagesPerTask, 1),
        percent(What::Used),
        count(What::Lost),
        count(What::Twice),
    ]
}

fn table(with_phases: bool, mut rows: Vec<Vec<Cell>>) -> Table {
    const PHASE: usize = 1;
    let mut columns: Vec<_> = [
        "placement",
        "phase",
        "tasks",
        "started %",
        "mean wait ms",
        "p99 wait ms",
        "wasted",
        "messages",
        "used %",
        "lost",
        "twice",
    ]
    .map(str::to_owned)
    .to_vec();
    if !with_phases {
        columns.remove(PHASE);
        rows.iter_mut().for_each(|row| drop(row.remove(PHASE)));
    }
    Table { title: "Tasks that were due in the time that is judged".to_owned(), columns, rows }
}

// === impl Judged ===

impl<'a> Judged<'a> {
    fn new(
        scenario: &'a Scenario,
        run: &'a PlacementRun,
        spans: &[PhaseSpan],
        phase: Option<usize>,
    ) -> Self {
        let is_in = |number: &usize| phase.is_none_or(|phase| phase == *number);
        let spans = spans.iter().enumerate().filter(|(number, _)| is_in(number));
        let windows = spans.map(|(number, span)| {
            (number, (span.from_s + scenario.settle_s).min(span.until_s), span.until_s)
        });
        Self { scenario, run, windows: windows.collect() }
    }

    fn has(&self, at_s: f64) -> bool {
        self.windows.iter().any(|(_, from_s, until_s)| (*from_s..*until_s).contains(&at_s))
    }

    fn due(&self) -> impl Iterator<Item = &TaskRun> {
        self.run.tasks.iter().filter(|task| self.has(task.due_s))
    }

    fn figures(&self, found: &mut Findings, name: &str, phase: Option<&str>) {
        let over_s = self.scenario.duration_s;
        let in_time = |task: &TaskRun| task.started_s.filter(|at_s| *at_s <= over_s);
        let mut waits_ms: Vec<f64> = self
            .due()
            .map(|task| (in_time(task).unwrap_or(over_s) - task.due_s).max(0.0) * 1e3)
            .collect();
        waits_ms.sort_unstable_by(f64::total_cmp);
        if waits_ms.is_empty() {
            return;
        }
        let started = self.due().filter(|task| in_time(task).is_some()).count();
        let due = waits_ms.len() as f64;
        found.figure(What::GoodputOfOffered, name, phase, started as f64 / due);
        found.figure(What::WaitMeanMs, name, phase, waits_ms.iter().sum::<f64>() / due);
        if let Some(p99_ms) = at_percent(&waits_ms, 99) {
            found.figure(What::WaitP99Ms, name, phase, p99_ms);
        }
        // What is counted in a stretch of time is divided by what was started in it, whenever that was due.
        let starts = self.run.tasks.iter().filter_map(|task| task.started_s);
        let starts = starts.filter(|at_s| self.has(*at_s)).count().max(1) as f64;
        let counts = self.windows.iter().filter_map(|(number, ..)| self.run.counts.get(*number));
        let wasted: u64 = counts.clone().map(|counts| counts.wasted).sum();
        found.figure(What::WastedPerTask, name, phase, wasted as f64 / starts);
        if let Some(messages) = counts.map(|counts| counts.messages).sum::<Option<u64>>() {
            found.figure(What::MessagesPerTask, name, phase, messages as f64 / starts);
        }
        found.figure(What::Used, name, phase, self.used());
    }

    fn used(&self) -> f64 {
        let executors = self.scenario.executors.as_ref().map_or(1, |world| world.executors);
        let slot_s: f64 = self.windows.iter().map(|(_, from_s, until_s)| until_s - from_s).sum();
        let busy = |(began_s, ended_s): &(f64, f64)| -> f64 {
            let windows = self.windows.iter();
            windows
                .map(|(_, from_s, until_s)| (ended_s.min(*until_s) - began_s.max(*from_s)).max(0.0))
                .sum()
        };
        let busy_s: f64 = self.run.ran_s.iter().map(busy).sum();
        if slot_s > 0.0 { busy_s / slot_s / f64::from(executors) } else { 0.0 }
    }
}
