use std::fmt;
use std::sync::Arc;

/// Names per row: a name competes only with those of its row.
const WAYS: usize = 4;

/// Cache of interned names, so that a name is allocated once and not with every record.
///
/// The cache is bounded and evicts the least recently used: a sender with a new name in every record costs one
/// allocation per record, and no memory. Names with the same hash evict only each other, so no choice of names can
/// make it slow.
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

/// Most recently used first.
type Row = [Option<Name>; WAYS];

struct Name {
    hash: u64,
    text: Arc<str>,
}

// === impl Names ===

impl Names {
    /// Default number of cached names.
    pub const CAPACITY: usize = 4096;

    /// Maximum length of a cached name, in bytes; a longer one is allocated each time.
    pub const NAME_BYTES_MAX: usize = 1024;

    /// Creates a cache for about `capacity` names: rounded up to a power of two, at least 4.
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

    /// Returns the name, shared with earlier callers if it is cached.
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
            Some(position) => {
                self.hits += 1;
                if position > 0 {
                    row[..=position].rotate_right(1);
                }
                row[0].as_ref().map_or_else(|| Arc::from(text), |name| Arc::clone(&name.text))
            }
            None => self.add(hash, text),
        }
    }

    /// Number of names found in the cache.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Number of names allocated.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Capacity in names.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.rows.len() * WAYS
    }

    #[cold]
    fn add(&mut self, hash: u64, text: &str) -> Arc<str> {
        self.misses += 1;
        let name: Arc<str> = Arc::from(text);
        if text.len() <= Self::NAME_BYTES_MAX {
            let row = &mut self.rows[hash as usize & (self.rows.len() - 1)];
            row.rotate_right(1);
            row[0] = Some(Name { hash, text: Arc::clone(&name) });
        }
        name
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

/// Hash for tables that stay correct, bounded and fast enough under deliberate collisions.
#[inline]
pub(crate) fn text_hash(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let Some(last) = text.last_chunk::<8>() else {
        return mix(hash, text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    };
    for word in text.chunks_exact(8) {
        hash = mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    // The remaining bytes, and some of those before.
    mix(hash, u64::from_le_bytes(*last))
}

/// Folds the product: a multiplication carries only upwards, and its upper half brings the high bits down again.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    // 2^64 / the golden ratio: an odd number with well-distributed bits.
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
