/// Counters below the highest one of a sender that are still told apart.
pub const REPLAY_WINDOW: u64 = 1_024;

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// Counters of a sender's packets that have arrived: each is accepted once, in any order within the window.
///
/// ```
/// use tidegate_core::membership::ReplayWindow;
///
/// let mut window = ReplayWindow::default();
/// assert!(window.accept(7) && window.accept(5));
/// assert!(!window.accept(7), "a replay");
/// assert!(window.accept(2_000));
/// assert!(!window.accept(6), "too old to tell");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayWindow {
    highest: Option<u64>,
    /// Bit of a counter modulo the window.
    seen: [u64; WORDS],
}

// === impl ReplayWindow ===

impl ReplayWindow {
    /// Notes a counter. False for one that has arrived before, or that is too old to tell.
    #[must_use]
    pub fn accept(&mut self, counter: u64) -> bool {
        match self.highest {
            None => self.highest = Some(counter),
            Some(highest) if counter > highest => {
                if counter - highest >= REPLAY_WINDOW {
                    self.seen = [0; WORDS];
                } else {
                    ((highest + 1)..counter).for_each(|skipped| self.set(skipped, false));
                }
                self.highest = Some(counter);
            }
            Some(highest) => {
                if highest - counter >= REPLAY_WINDOW || self.is_set(counter) {
                    return false;
                }
            }
        }
        self.set(counter, true);
        true
    }

    fn is_set(&self, counter: u64) -> bool {
        let (word, bit) = place(counter);
        self.seen[word] & bit != 0
    }

    fn set(&mut self, counter: u64, seen: bool) {
        let (word, bit) = place(counter);
        if seen {
            self.seen[word] |= bit;
        } else {
            self.seen[word] &= !bit;
        }
    }
}

/// Word and bit of a counter.
const fn place(counter: u64) -> (usize, u64) {
    let at = counter % REPLAY_WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_set_of_all_counters() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
            let mut around = 0_u64;
            for step in 0..5_000 {
                around += rng.next_u64() % 4;
                if rng.next_u64().is_multiple_of(500) {
                    around += rng.next_u64() % 3_000;
                }
                let counter = around.saturating_sub(rng.next_u64() % 1_200);
                let highest = seen.last().copied().unwrap_or(0);
                let is_new = !seen.contains(&counter)
                    && (counter > highest || highest - counter < REPLAY_WINDOW);
                assert_eq!(window.accept(counter), is_new, "seed {seed}, step {step}: {counter}");
                if is_new {
                    seen.insert(counter);
                }
            }
        }
    }

    #[test]
    fn the_last_counter_is_accepted_once() {
        let mut window = ReplayWindow::default();
        assert!(window.accept(u64::MAX) && !window.accept(u64::MAX));
        assert!(window.accept(u64::MAX - 1_023) && !window.accept(u64::MAX - 1_024));
    }
}
