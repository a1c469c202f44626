//! Charts over time.

use super::recorder::{FlowPicture, FlowRecorder};
use super::slices::Slice;
use crate::report::{Chart, Line};
use tidegate_core::window::Stage;

/// Rates are shown for stretches of this many slices: a second, where slices are of 100 ms.
const SLICES_AT_ONCE: usize = 10;

impl FlowRecorder {
    pub(super) fn charts(&self) -> Vec<Chart> {
        let rates = vec![self.rate("offered", |s| s.offered), self.rate("stored", |s| s.stored)];
        let waiting = self.slices.waiting().map(|(at_s, count)| (at_s, Some(count as f64)));
        let waiting = Line { name: "waiting".to_owned(), points: waiting.collect() };
        let mut charts = vec![
            chart("Records offered and stored", "records/s", rates),
            chart("Records offered and not stored yet", "records", vec![waiting]),
        ];
        if self.pictures.is_empty() {
            return charts;
        }
        let window = |picture: &FlowPicture, stage: usize| picture.windows[stage] as f64;
        let fill = |picture: &FlowPicture, stage: usize| {
            let slots = picture.windows[stage].max(1) as f64;
            100.0 * picture.queued[stage] as f64 / slots
        };
        let held = |picture: &FlowPicture| picture.held_bytes as f64 / f64::from(1 << 20);
        let level = |picture: &FlowPicture| picture.level.index() as f64;
        charts.extend([
            chart("Windows of the stages", "slots", self.by_stage(window)),
            chart("How full they are", "%", self.by_stage(fill)),
            chart("Held in all windows", "MiB", vec![self.seen("held", held)]),
            chart(
                "What senders are told: 0 NONE … 3 REJECT",
                "level",
                vec![self.seen("level", level)],
            ),
        ]);
        charts
    }

    fn rate(&self, name: &str, count: fn(&Slice) -> u64) -> Line {
        let width_s = self.slices.width_s();
        let point = |(index, slices): (usize, &[Slice])| {
            let at_s = (index * SLICES_AT_ONCE) as f64 * width_s;
            let records: u64 = slices.iter().map(count).sum();
            (at_s, Some(records as f64 / (slices.len() as f64 * width_s)))
        };
        let points = self.slices.all.chunks(SLICES_AT_ONCE).enumerate().map(point).collect();
        Line { name: name.to_owned(), points }
    }

    fn by_stage(&self, value: fn(&FlowPicture, usize) -> f64) -> Vec<Line> {
        let line = |stage: Stage| self.seen(stage.name(), |it| value(it, stage.index()));
        Stage::ALL.map(line).to_vec()
    }

    fn seen(&self, name: &str, value: impl Fn(&FlowPicture) -> f64) -> Line {
        let point = |picture: &FlowPicture| (picture.at.as_secs_f64(), Some(value(picture)));
        Line { name: name.to_owned(), points: self.pictures.iter().map(point).collect() }
    }
}

fn chart(title: &str, unit: &str, lines: Vec<Line>) -> Chart {
    Chart { title: title.to_owned(), unit: unit.to_owned(), lines }
}
