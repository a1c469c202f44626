use super::refusals::Refusals;
use super::slice_times::SliceTimes;
use std::time::Duration;

/// Stretches of 100 ms, or longer ones in a long run: there are never more than this.
const BINS_MAX: u64 = 6_000;
const BIN_LEAST: Duration = Duration::from_millis(100);
/// Latencies are kept by stretches of this many bins.
const BINS_A_SLICE: usize = 10;

/// Counts of each class over time.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    width: Duration,
    classes: usize,
    bins: Vec<Bin>,
    /// The latencies of good responses, by their due time.
    slices: Vec<SliceTimes>,
}

/// Counts of one class in one slice of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bin {
    /// Requests that were due then.
    pub(super) offered: u64,
    /// Requests of these that got a good response in the end.
    pub(super) turned_out_good: u64,
    /// Their latencies together, in microseconds.
    pub(super) latency_sum_us: u64,
    /// Good answers that ended then.
    pub(super) good: u64,
    /// Requests that failed or came too late then.
    pub(super) failed: u64,
    /// Attempts that were let in then.
    pub(super) let_in: u64,
    /// Attempts that were refused then.
    pub(super) refused: Refusals,
}

// === impl Bins ===

impl Bins {
    pub(super) fn new(duration_s: f64, classes: usize) -> Self {
        let duration = Duration::from_secs_f64(duration_s);
        let width = BIN_LEAST.max(duration / BINS_MAX as u32);
        let count = (duration_s / width.as_secs_f64()).ceil() as usize;
        Self {
            width,
            classes,
            bins: vec![Bin::default(); count * classes],
            slices: vec![SliceTimes::default(); count.div_ceil(BINS_A_SLICE) * classes],
        }
    }

    /// The bin of this class at this time; `None` after the end.
    pub(super) fn at(&mut self, time: Duration, class: usize) -> Option<&mut Bin> {
        let index = self.index(time);
        self.bins.get_mut(index * self.classes + class)
    }

    pub(super) fn latency(&mut self, due: Duration, class: usize, us: u64) {
        let slice = self.index(due) / BINS_A_SLICE;
        if let Some(times) = self.slices.get_mut(slice * self.classes + class) {
            times.record(us);
        }
    }

    fn index(&self, time: Duration) -> usize {
        (time.as_nanos() / self.width.as_nanos()) as usize
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            bin.add(more);
        }
        for (slice, more) in self.slices.iter_mut().zip(&other.slices) {
            slice.add(more);
        }
    }

    pub(super) fn each(&mut self, change: impl FnMut(&mut Bin)) {
        self.bins.iter_mut().for_each(change);
    }

    pub(super) fn width_s(&self) -> f64 {
        self.width.as_secs_f64()
    }

    /// Forgets all but so many bins.
    pub(super) fn keep(&mut self, count: usize) {
        self.bins.truncate(count * self.classes);
        self.slices.truncate(count.div_ceil(BINS_A_SLICE) * self.classes);
    }

    /// The bins one after the other, each with a [`Bin`] for each class.
    pub(super) fn rows(&self) -> impl Iterator<Item = (f64, &[Bin])> {
        let width_s = self.width_s();
        let rows = self.bins.chunks_exact(self.classes.max(1)).enumerate();
        rows.map(move |(index, row)| (index as f64 * width_s, row))
    }

    /// The same ten at a time, with latencies.
    pub(super) fn slices(&self) -> impl Iterator<Item = (f64, Vec<Bin>, &[SliceTimes])> {
        let (width_s, classes) = (self.width_s(), self.classes.max(1));
        let latencies = self.slices.chunks_exact(classes);
        let bins = self.bins.chunks(classes * BINS_A_SLICE);
        bins.zip(latencies).enumerate().map(move |(index, (bins, latencies))| {
            let mut sums = vec![Bin::default(); classes];
            for row in bins.chunks_exact(classes) {
                for (sum, bin) in sums.iter_mut().zip(row) {
                    sum.add(bin);
                }
            }
            ((index * BINS_A_SLICE) as f64 * width_s, sums, latencies)
        })
    }

    /// Returns the length of a slice in seconds.
    pub(super) fn slice_s(&self) -> f64 {
        self.width_s() * BINS_A_SLICE as f64
    }
}

// === impl Bin ===

impl Bin {
    pub(super) fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.turned_out_good += other.turned_out_good;
        self.latency_sum_us += other.latency_sum_us;
        self.good += other.good;
        self.failed += other.failed;
        self.let_in += other.let_in;
        for (reason, count) in other.refused.iter() {
            self.refused.add(reason, count);
        }
    }

    pub(super) fn refused_total(&self) -> u64 {
        self.refused.total()
    }
}
