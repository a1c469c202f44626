use crate::sync::{AtomicU64, Ordering};

/// The load of each upstream of a pool, contiguous in memory, so that one scan finds the least loaded.
#[derive(Debug)]
pub struct Loads {
    cells: Vec<AtomicU64>,
}

/// The load of an upstream without room.
const FULL: u64 = u64::MAX;

/// Loads that are compared at once: a cache line.
const CHUNK: usize = 8;

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
            let (chunks, rest) = cells.as_chunks::<CHUNK>();
            for (index, chunk) in chunks.iter().enumerate() {
                // Most chunks have none that is less, which a minimum without branches shows.
                let loads = chunk.each_ref().map(|cell| cell.load(Ordering::Relaxed));
                if loads.into_iter().fold(FULL, u64::min) < least.0 {
                    take_less(&mut least, offset + index * CHUNK, &loads);
                }
            }
            let rest_offset = offset + cells.len() - rest.len();
            for (index, cell) in rest.iter().enumerate() {
                take_less(&mut least, rest_offset + index, &[cell.load(Ordering::Relaxed)]);
            }
        }
        least.1
    }
}

/// Takes the first of the lowest of these loads, if it is less.
fn take_less(least: &mut (u64, Option<usize>), offset: usize, loads: &[u64]) {
    for (index, load) in loads.iter().enumerate() {
        if *load < least.0 {
            *least = (*load, Some(offset + index));
        }
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

    #[test]
    fn the_least_of_many_is_found_wherever_it_is() {
        for size in [7, 8, 9, 100] {
            for least in 0..size {
                let loads = Loads::new(size);
                (0..size).for_each(|number| loads.set(number, Some(5)));
                loads.set(least, Some(3));
                assert!((0..size).all(|start| loads.least(start) == Some(least)), "{size}");
                loads.set((least + 1) % size, Some(3));
                assert_eq!(loads.least(least), Some(least), "{size}");
            }
        }
    }
}
