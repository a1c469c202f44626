use std::fmt;
use std::sync::Arc;

/// How many names share a row: a name competes for room with those of its row only.
const WAYS: usize = 4;

/// Names that came before, so that a name is allocated once and not with every record.
///
/// It remembers a bounded number of them and forgets those that were not used for long: whoever sends a new
/// name with every record costs an allocation a record, and no memory. Names with the same hash push each other
/// out and nothing else, so nobody can make it slow by choosing names.
///
/// ```
/// use std::sync::Arc;
/// use tidegate_core::usage::Names;
///
/// let mut names = Names::default();
/// let first = names.get("acme");
/// assert!(Arc::ptr_eq(&first, &names.get("acme")));
/// ```
pub struct Names {
    rows: Box<[Row]>,
    empty: Arc<str>,
    hits: u64,
    misses: u64,
}

/// The newest use first.
type Row = [Option<Name>; WAYS];

struct Name {
    hash: u64,
    text: Arc<str>,
}

// === impl Names ===

impl Names {
    /// How many names are remembered unless said otherwise.
    pub const CAPACITY: usize = 4096;

    /// The longest name that is remembered, in bytes; a longer one is made anew each time.
    pub const NAME_BYTES_MAX: usize = 1024;

    /// Room for about so many names: rounded up to a power of two, 4 at the least.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let rows = capacity.div_ceil(WAYS).max(1).next_power_of_two();
        Self {
            rows: (0..rows).map(|_| Row::default()).collect(),
            empty: Arc::from(""),
            hits: 0,
            misses: 0,
        }
    }

    /// This name, shared with all who asked for it before, if it is remembered.
    #[inline]
    pub fn get(&mut self, text: &str) -> Arc<str> {
        if text.is_empty() {
            return Arc::clone(&self.empty);
        }
        let hash = text_hash(text.as_bytes());
        // The row count is a power of two.
        let row = &mut self.rows[hash as usize & (self.rows.len() - 1)];
        let found = row.iter().position(
            |name| matches!(name, Some(name) if name.hash == hash && *name.text == *text),
        );
        match found {
            Some(place) => {
                self.hits += 1;
                if place > 0 {
                    row[..=place].rotate_right(1);
                }
                row[0].as_ref().map_or_else(|| Arc::from(text), |name| Arc::clone(&name.text))
            }
            None => self.add(hash, text),
        }
    }

    /// How many names were remembered when asked for.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// How many had to be made.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// How many names it can remember.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.rows.len() * WAYS
    }

    #[cold]
    fn add(&mut self, hash: u64, text: &str) -> Arc<str> {
        self.misses += 1;
        let made: Arc<str> = Arc::from(text);
        if text.len() <= Self::NAME_BYTES_MAX {
            let row = &mut self.rows[hash as usize & (self.rows.len() - 1)];
            row.rotate_right(1);
            row[0] = Some(Name { hash, text: Arc::clone(&made) });
        }
        made
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::with_capacity(Self::CAPACITY)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names")
            .field("capacity", &self.capacity())
            .field("hits", &self.hits)
            .field("misses", &self.misses)
            .finish_non_exhaustive()
    }
}

/// A hash for tables that stay right, bounded and fast enough when somebody makes hashes collide.
#[inline]
pub(crate) fn text_hash(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let Some(last) = text.last_chunk::<8>() else {
        return mix(hash, text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    };
    for word in text.chunks_exact(8) {
        hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    // What is left over, and some of what was before.
    mix(hash, u64::from_le_bytes(*last))
}

/// Multiplying carries upwards only: the upper half of the product brings the high bits down again.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    // An odd number with its bits well spread: 2^64 / the golden ratio.
    const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash.rotate_left(29) ^ word) * SPREAD;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_once() {
        let mut names = Names::default();
        let first = names.get("acme");
        for _ in 0..10 {
            assert!(Arc::ptr_eq(&first, &names.get("acme")));
        }
        assert_eq!((names.hits(), names.misses()), (10, 1));
    }

    #[test]
    fn new_names_push_out_those_long_unused_and_nothing_grows() {
        let mut names = Names::with_capacity(8);
        assert_eq!(names.capacity(), 8);
        let kept = names.get("kept");
        for number in 0..1_000 {
            let _ = names.get(&number.to_string());
            assert!(Arc::ptr_eq(&kept, &names.get("kept")), "used all the time");
        }
        let held = names.rows.iter().flatten().flatten().count();
        assert!(held <= 8, "{held}");
        assert_eq!(names.misses(), 1_001);
    }

    #[test]
    fn a_long_name_is_not_remembered() {
        let mut names = Names::default();
        let long = "x".repeat(Names::NAME_BYTES_MAX + 1);
        assert_eq!(*names.get(&long), *long);
        assert!(!Arc::ptr_eq(&names.get(&long), &names.get(&long)));
    }

    #[test]
    fn names_that_differ_in_one_byte_spread() {
        let rows: std::collections::BTreeSet<_> =
            (0..256).map(|n| text_hash(format!("tenant-{n:03}").as_bytes()) & 1023).collect();
        assert!(rows.len() > 200, "{} rows of 1,024 for 256 names", rows.len());
    }
}
