use super::bounds::BUCKETS_MAX;
use serde::{Deserialize, Serialize};

/// Distribution of values: how many there were in each bucket since the execution began.
///
/// Counts are cumulative over time, as counters are: a merge takes the highest count of each bucket, so lost,
/// repeated and reordered reports are harmless.
///
/// ```
/// use tidegate_core::progress::Histogram;
///
/// let mut known = Histogram::new(vec![1.0, 10.0], vec![3, 6, 1])?;
/// assert!(known.merge(&Histogram::new(vec![1.0, 10.0], vec![4, 6, 1])?));
/// assert_eq!((known.count(), known.quantile(0.5)), (11, Some(10.0)));
/// assert_eq!(known.quantile(1.0), Some(f64::INFINITY), "above all bounds");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Histogram {
    bounds: Box<[f64]>,
    counts: Box<[u64]>,
}

/// Histogram before it is checked. Unknown fields are ignored: a newer node may send more.
#[derive(Deserialize)]
pub(super) struct UncheckedHistogram {
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

// === impl Histogram ===

impl Histogram {
    /// A histogram with these upper bounds of buckets, and the number of values in each; the last bucket has no
    /// bound.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and what is expected.
    pub fn new(bounds: Vec<f64>, counts: Vec<u64>) -> Result<Self, String> {
        if counts.is_empty() || counts.len() > BUCKETS_MAX {
            return Err(format!("{} counts; expected 1 … {BUCKETS_MAX}", counts.len()));
        }
        if counts.len() != bounds.len() + 1 {
            let expected = bounds.len() + 1;
            return Err(format!(
                "{} counts for {} bounds; expected {expected}, the last for values above all bounds",
                counts.len(),
                bounds.len()
            ));
        }
        let rises = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        match rises && bounds.iter().all(|bound| bound.is_finite()) {
            true => Ok(Self { bounds: bounds.into(), counts: counts.into() }),
            false => {
                Err("bounds that do not rise; expected finite numbers, each above the one before"
                    .to_owned())
            }
        }
    }

    /// Takes the highest count of each bucket. False, and nothing changes, if the bounds are others.
    pub fn merge(&mut self, newer: &Self) -> bool {
        if self.bounds != newer.bounds {
            return false;
        }
        for (known, newer) in self.counts.iter_mut().zip(&newer.counts) {
            *known = (*known).max(*newer);
        }
        true
    }

    /// Upper bounds of all buckets but the last.
    #[must_use]
    pub fn bounds(&self) -> &[f64] {
        &self.bounds
    }

    /// Number of values in each bucket.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |all, count| all.saturating_add(*count))
    }

    /// Upper bound of the bucket that has this share, 0 … 1, of the values in it or below: infinity in the last
    /// one. `None` without values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let wanted = ((all as f64 * share).ceil()).max(1.0);
        let mut below = 0_u64;
        let bucket = self.counts.iter().position(|count| {
            below = below.saturating_add(*count);
            below as f64 >= wanted
        });
        let bound = bucket.and_then(|bucket| self.bounds.get(bucket));
        Some(bound.copied().unwrap_or(f64::INFINITY))
    }

    /// Approximate memory that it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.bounds) + size_of_val(&*self.counts)
    }
}

impl TryFrom<UncheckedHistogram> for Histogram {
    type Error = String;

    fn try_from(given: UncheckedHistogram) -> Result<Self, String> {
        Self::new(given.bounds, given.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(counts: [u64; 4]) -> Histogram {
        Histogram::new(vec![1.0, 5.0, 25.0], counts.to_vec()).unwrap()
    }

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let values = histogram([50, 40, 9, 1]);
        let found = [0.0, 0.5, 0.51, 0.9, 0.99, 1.0].map(|share| values.quantile(share).unwrap());
        assert_eq!(found, [1.0, 1.0, 5.0, 5.0, 25.0, f64::INFINITY]);
        assert_eq!(histogram([0; 4]).quantile(0.5), None);
        assert_eq!(histogram([u64::MAX; 4]).quantile(0.5), Some(1.0), "no overflow");
    }

    #[test]
    fn what_is_no_histogram_is_told() {
        let error = |bounds: &[f64], counts: &[u64]| {
            Histogram::new(bounds.to_vec(), counts.to_vec()).unwrap_err()
        };
        assert!(error(&[], &[]).contains("expected 1 … 32"));
        assert!(error(&[0.0; 40], &[0; 41]).contains("41 counts"));
        assert!(error(&[1.0, 2.0], &[1, 2]).contains("2 counts for 2 bounds; expected 3"));
        for bounds in [[2.0, 1.0], [1.0, 1.0], [1.0, f64::NAN], [1.0, f64::INFINITY]] {
            assert!(error(&bounds, &[0; 3]).contains("do not rise"), "{bounds:?}");
        }
    }

    proptest! {
        /// A histogram that carries differences counts a resent one twice, and loses one that is lost.
        #[test]
        fn merges_in_any_order_with_losses_and_repeats_give_the_newest(
            values in prop::collection::vec(0..4_usize, 1..200),
            sent in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let (mut truth, mut all) = ([0; 4], Vec::new());
            for value in values {
                truth[value] += 1;
                all.push(histogram(truth));
            }
            let mut known = histogram([0; 4]);
            for at in sent {
                prop_assert!(known.merge(at.get(&all)));
                let mut pairs = known.counts().iter().zip(&truth);
                prop_assert!(pairs.all(|(known, truth)| known <= truth));
            }
            prop_assert!(known.merge(all.last().unwrap()));
            prop_assert_eq!(&known, &histogram(truth));
            let other = Histogram::new(vec![7.0], vec![9, 9]).unwrap();
            prop_assert!(!known.merge(&other), "other bounds");
            prop_assert_eq!(known, histogram(truth));
        }
    }
}
