use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

/// A world that can be in finitely many states.
pub trait Model: Clone + Hash {
    /// Every state that one step leads to.
    fn steps(&self) -> Vec<Self>;

    /// Violated invariant, if any.
    fn wrong(&self) -> Option<&'static str>;

    /// True if all work is done, or the bounds of the search are reached.
    fn is_done(&self) -> bool;
}

/// Result of the search.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    pub states: usize,
    /// In how many steps at the least, and what.
    pub wrong: Option<(usize, &'static str)>,
    /// States from which no way leads to the end.
    pub stuck: usize,
}

/// More would not be searched through in time: the bounds of the world are too wide.
const STATES_MAX: usize = 1_500_000;

/// Looks at every state that can be reached, the nearest first, and stops at the first that is wrong. States are
/// known by 64 bits of hash: among a million the chance that two are taken for one is 1 in 30 million.
pub fn search<M: Model>(start: M) -> Found {
    let mut known = BTreeMap::from([(hash(&start), 0_u32)]);
    let mut queue = VecDeque::from([(start, 0_u32, 0_usize)]);
    let mut ways: Vec<(u32, u32)> = Vec::new();
    let mut done = Vec::new();
    while let Some((state, number, depth)) = queue.pop_front() {
        if let Some(what) = state.wrong() {
            return Found { states: known.len(), wrong: Some((depth, what)), stuck: 0 };
        }
        if state.is_done() {
            done.push(number);
        }
        for next in state.steps() {
            let new = u32::try_from(known.len()).unwrap();
            let to = *known.entry(hash(&next)).or_insert(new);
            ways.push((to, number));
            if to == new {
                assert!(known.len() < STATES_MAX, "too many states");
                queue.push_back((next, new, depth + 1));
            }
        }
    }
    let stuck = known.len() - reaching(done, ways, known.len());
    Found { states: known.len(), wrong: None, stuck }
}

/// Number of states with a path to one of these.
fn reaching(ends: Vec<u32>, mut ways: Vec<(u32, u32)>, states: usize) -> usize {
    ways.sort_unstable();
    let mut reached = vec![false; states];
    let mut queue = ends;
    let mut count = 0;
    while let Some(to) = queue.pop() {
        if std::mem::replace(&mut reached[to as usize], true) {
            continue;
        }
        count += 1;
        let first = ways.partition_point(|way| way.0 < to);
        queue.extend(ways[first..].iter().take_while(|way| way.0 == to).map(|way| way.1));
    }
    count
}

fn hash(state: &impl Hash) -> u64 {
    let mut hasher = Fold(0);
    state.hash(&mut hasher);
    hasher.finish()
}

/// Fast without optimisation, which the library's own hash is not: a multiplication for each word.
struct Fold(u64);

// === impl Fold ===

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        // A word and a shift between the multiplications, or high bits would never reach the low ones.
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = (mixed ^ (mixed >> 29)).rotate_left(23).wrapping_add(1);
    }

    fn finish(&self) -> u64 {
        let mixed = self.0.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    }
}
