use crate::sync::{AtomicU64, Ordering};

/// The load of each upstream of a pool, contiguous in memory, so that one scan finds the least loaded.
#[derive(Debug)]
pub struct Loads {
    cells: Vec<AtomicU64>,
}

/// The load of an upstream without room.
const FULL: u64 = u64::MAX;

// === impl Loads ===

impl Loads {
    /// Creates the loads of `size` upstreams, all without room.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self { cells: (0..size).map(|_| AtomicU64::new(FULL)).collect() }
    }

    /// Sets the load of one upstream; `None`: it has no room. An index beyond the size is ignored.
    pub fn set(&self, number: usize, load: Option<u64>) {
        if let Some(cell) = self.cells.get(number) {
            cell.store(load.map_or(FULL, |load| load.min(FULL - 1)), Ordering::Relaxed);
        }
    }

    /// Returns the least loaded upstream that has room. Among equals the first from `start` on, so that a burst is
    /// spread.
    #[must_use]
    pub fn least(&self, start: usize) -> Option<usize> {
        let (before, from) = self.cells.split_at(start % self.cells.len().max(1));
        let mut least = (FULL, None);
        for (offset, cells) in [(before.len(), from), (0, before)] {
            for (number, cell) in cells.iter().enumerate() {
                let load = cell.load(Ordering::Relaxed);
                if load < least.0 {
                    least = (load, Some(offset + number));
                }
            }
        }
        least.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_loaded_is_found_and_equals_take_turns() {
        let loads = Loads::new(5);
        assert_eq!(loads.least(0), None);
        for (number, load) in [4, 2, 9, 2, 7].into_iter().enumerate() {
            loads.set(number, Some(load));
        }
        assert_eq!([0, 1, 2, 4, 98].map(|start| loads.least(start)), [1, 1, 3, 1, 3].map(Some));
        loads.set(1, None);
        loads.set(3, None);
        loads.set(99, Some(0));
        assert_eq!(loads.least(4), Some(0));
    }
}
