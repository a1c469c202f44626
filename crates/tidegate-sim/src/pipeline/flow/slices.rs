use std::time::Duration;

/// Stretches of 100 ms, or longer ones in a long run: there are never more than this.
const SLICES_MAX: u32 = 6_000;
const SLICE_LEAST: Duration = Duration::from_millis(100);

/// Records offered and stored over time.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    pub(super) width: Duration,
    pub(super) all: Vec<Slice>,
}

/// One stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) offered: u64,
    pub(super) stored: u64,
}

// === impl Slices ===

impl Slices {
    pub(super) fn new(duration_s: f64) -> Self {
        let duration = Duration::from_secs_f64(duration_s);
        let width = SLICE_LEAST.max(duration / SLICES_MAX);
        let count = (duration_s / width.as_secs_f64()).ceil() as usize;
        Self { width, all: vec![Slice::default(); count] }
    }

    /// The stretch of this time; `None` after the end.
    pub(super) fn at(&mut self, time: Duration) -> Option<&mut Slice> {
        self.all.get_mut((time.as_nanos() / self.width.as_nanos()) as usize)
    }

    pub(super) fn width_s(&self) -> f64 {
        self.width.as_secs_f64()
    }

    /// Returns the records that could have been stored at these rates, if all offered records were available at
    /// once.
    pub(super) fn possible(&self, flows_per_s: impl Fn(f64) -> f64) -> f64 {
        let width_s = self.width_s();
        let (mut left, mut done) = (0.0, 0.0);
        for (index, slice) in self.all.iter().enumerate() {
            left += slice.offered as f64;
            let flows = (flows_per_s((index as f64 + 0.5) * width_s) * width_s).min(left);
            left -= flows;
            done += flows;
        }
        done
    }

    /// When each begins, with how many records wait at its end: offered by then, and not stored.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (f64, u64)> {
        let width_s = self.width_s();
        let mut waiting = 0_u64;
        self.all.iter().enumerate().map(move |(index, slice)| {
            waiting = (waiting + slice.offered).saturating_sub(slice.stored);
            (index as f64 * width_s, waiting)
        })
    }
}
