/// The sub-buckets of a power of two.
const PARTS: u32 = 32;
const PARTS_BITS: u32 = PARTS.ilog2();
/// From a microsecond to an hour and more: below 32 µs each has its own, above it 32 for each power of two.
const BUCKETS: usize = ((u32::BITS - PARTS_BITS + 1) * PARTS) as usize;

/// Times of one class in one stretch, in microseconds, to a 64th of themselves: enough for a point of a chart.
/// There are as many of these as stretches times classes, so each must be small: 3.5 KiB, and nothing where there
/// is none.
#[derive(Clone, Debug, Default)]
pub(super) struct SliceTimes(Option<Box<[u32; BUCKETS]>>);

// === impl SliceTimes ===

impl SliceTimes {
    pub(super) fn record(&mut self, us: u64) {
        let us = u32::try_from(us).unwrap_or(u32::MAX);
        let counts = self.0.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let count = &mut counts[bucket(us)];
        *count = count.saturating_add(1);
    }

    pub(super) fn add(&mut self, other: &Self) {
        let Some(more) = &other.0 else { return };
        let counts = self.0.get_or_insert_with(|| Box::new([0; BUCKETS]));
        for (count, more) in counts.iter_mut().zip(more.iter()) {
            *count = count.saturating_add(*more);
        }
    }

    /// The time that this share of them did not exceed.
    pub(super) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let counts = self.0.as_ref()?;
        let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let wanted = ((total as f64 * quantile).ceil() as u64).max(1);
        let mut sum = 0;
        let at = counts.iter().position(|count| {
            sum += u64::from(*count);
            sum >= wanted
        })?;
        Some(middle_us(at) / 1e3)
    }
}

fn bucket(us: u32) -> usize {
    if us < PARTS {
        return us as usize;
    }
    // How far above the linear part its power of two is, and the bits below its highest.
    let above = us.ilog2() - PARTS_BITS;
    let part = (us >> above) - PARTS;
    ((above + 1) * PARTS + part) as usize
}

/// The middle of the times that are counted there.
fn middle_us(at: usize) -> f64 {
    let (at, parts) = (at as u64, u64::from(PARTS));
    if at < parts {
        return at as f64;
    }
    let (above, part) = (at / parts - 1, at % parts);
    let width = 1_u64 << above;
    ((parts + part) * width) as f64 + (width - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_told_to_a_64th_of_itself() {
        let mut us = 1_u32;
        while us < 3_600_000_000 / 2 {
            let told = middle_us(bucket(us));
            assert!((told - f64::from(us)).abs() <= f64::from(us) / 64.0, "{us}: {told}");
            us += 1 + us / 77;
        }
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
        assert!((0..BUCKETS - 1).all(|at| middle_us(at) < middle_us(at + 1)));
    }

    #[test]
    fn the_99th_of_a_hundred_is_the_99th() {
        let mut times = SliceTimes::default();
        assert_eq!(times.quantile_ms(0.99), None);
        let mut others = SliceTimes::default();
        for ms in 1..=1000 {
            let half = if ms % 2 == 0 { &mut times } else { &mut others };
            half.record(ms * 1000);
        }
        times.add(&others);
        let p99_ms = times.quantile_ms(0.99).unwrap();
        assert!((p99_ms / 990.0 - 1.0).abs() <= 1.0 / 32.0, "{p99_ms}");
        let p50_ms = times.quantile_ms(0.5).unwrap();
        assert!((p50_ms / 500.0 - 1.0).abs() <= 1.0 / 32.0, "{p50_ms}");
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<[u32; BUCKETS]>(), 3584);
        assert_eq!(size_of::<SliceTimes>(), size_of::<usize>());
    }
}
