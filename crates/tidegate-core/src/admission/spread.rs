use crate::sync::{AtomicU64, Ordering};

/// Fractional part of the golden ratio, of 2⁶⁴: its multiples are evenly distributed over any interval, without
/// randomness.
const GOLDEN_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Sequence of numbers evenly distributed over 0 … 1, one per call: jitter for clients that are refused together.
///
/// ```
/// use tidegate_core::admission::Spread;
/// let spread = Spread::default();
/// let mut numbers: Vec<f64> = (0..100).map(|_| spread.next()).collect();
/// numbers.sort_by(f64::total_cmp);
/// assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] < 0.03));
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
    /// Next number.
    pub fn next(&self) -> f64 {
        self.turn.fetch_add(GOLDEN_STEP, Ordering::Relaxed) as f64 / u64::MAX as f64
    }
}
