use crate::sync::{AtomicU64, Ordering};

/// The fractional part of the golden ratio, of 2⁶⁴: steps of it fall evenly into any stretch, in any order of
/// arrival, without randomness.
const GOLDEN_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Numbers that are spread evenly over 0 … 1, one for each who asks: to tell those who are refused together
/// different times.
///
/// ```
/// use tidegate_core::admission::Spread;
/// let spread = Spread::default();
/// let mut told: Vec<f64> = (0..100).map(|_| spread.next()).collect();
/// told.sort_by(f64::total_cmp);
/// assert!(told.windows(2).all(|pair| pair[1] - pair[0] < 0.03));
/// ```
#[derive(Debug)]
pub struct Spread {
    turn: AtomicU64,
}

// === impl Spread ===

impl Default for Spread {
    fn default() -> Self {
        Self { turn: AtomicU64::new(0) }
    }
}

impl Spread {
    /// The next one's.
    pub fn next(&self) -> f64 {
        self.turn.fetch_add(GOLDEN_STEP, Ordering::Relaxed) as f64 / u64::MAX as f64
    }
}
