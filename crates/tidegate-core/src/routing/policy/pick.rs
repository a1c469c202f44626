use crate::rng::Rng;
use crate::routing::availability::{FreeSet, Loads};
use crate::routing::load::ExpectedWait;
use serde::{Deserialize, Serialize};

/// The choice among upstreams that have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The better of two drawn at random, by their [expected waits](ExpectedWait).
    #[default]
    PowerOfTwo,
    /// Each in turn.
    RoundRobin,
    /// One drawn at random.
    Random,
    /// The one with the fewest requests.
    LeastLoaded,
    /// The one that the request names; without a name as [`Pick::PowerOfTwo`].
    Direct,
}

/// The lower half of a draw.
const HALF: u64 = u32::MAX as u64;

/// Numbers that are counted as fast as they are drawn: one word.
const COUNTED_MAX: u64 = 64;

/// Trials that take as long as counting 16 words does. With a quarter of 1,000 upstreams free, half of the draws
/// succeed within them.
const TRIALS_MAX: usize = 10;

// === impl Pick ===

impl Pick {
    /// Every pick.
    pub const ALL: [Self; 5] =
        [Self::PowerOfTwo, Self::RoundRobin, Self::Random, Self::LeastLoaded, Self::Direct];

    /// Chooses among the members of `free`, with their loads, their expected waits, a random number and the
    /// number of this turn.
    ///
    /// Returns `None` when the set is empty, also because the last member left meanwhile.
    #[must_use]
    pub fn choose(
        self,
        free: &FreeSet,
        loads: &Loads,
        wait: impl Fn(usize) -> ExpectedWait,
        draw: u64,
        turn: u64,
    ) -> Option<usize> {
        match self {
            Self::PowerOfTwo | Self::Direct => better_of_two(free, wait, draw),
            Self::RoundRobin => {
                let size = free.len().max(1) as u64;
                free.nth((turn % size) as usize).or_else(|| free.next_from(0))
            }
            Self::Random => {
                let size = free.len().max(1) as u64;
                free.nth((draw % size) as usize).or_else(|| free.next_from(0))
            }
            Self::LeastLoaded => loads.least(draw as u32 as usize),
        }
    }
}

fn better_of_two(free: &FreeSet, wait: impl Fn(usize) -> ExpectedWait, draw: u64) -> Option<usize> {
    let two = match two_by_trial(free, draw) {
        Some((a, b)) => (Some(a), Some(b)),
        None => two_by_rank(free, draw),
    };
    match two {
        (Some(a), Some(b)) => Some(if wait(a).compare(&wait(b)).is_le() { a } else { b }),
        (one, other) => one.or(other).or_else(|| free.next_from(0)),
    }
}

/// Draws numbers until two of them are members, so that every two are as likely. `None` in a small set, and in one
/// with so few members that counting them is faster.
fn two_by_trial(free: &FreeSet, mut draw: u64) -> Option<(usize, usize)> {
    let range = free.range() as u64;
    if range <= COUNTED_MAX {
        return None;
    }
    for _ in 0..TRIALS_MAX {
        let [a, b] = [draw & HALF, draw >> 32].map(|half| ((half * range) >> 32) as usize);
        if a != b && free.contains(a) && free.contains(b) {
            return Some((a, b));
        }
        draw = Rng::mix(draw.wrapping_add(Rng::STEP));
    }
    None
}

fn two_by_rank(free: &FreeSet, draw: u64) -> (Option<usize>, Option<usize>) {
    let size = free.len();
    if size < 2 {
        return (free.next_from(0), None);
    }
    let first = (draw & HALF) as usize % size;
    // Never the same twice: an offset of 1 … size − 1.
    let offset = 1 + (draw >> 32) as usize % (size - 1);
    (free.nth(first), free.nth((first + offset) % size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chooses among upstreams whose cost is also their load.
    fn choose(pick: Pick, free: &FreeSet, costs: &[u64], draw: u64, turn: u64) -> Option<usize> {
        let loads = Loads::new(costs.len());
        free.iter().for_each(|number| loads.set(number, Some(costs[number])));
        let wait = |number: usize| ExpectedWait { requests: costs[number], ..Default::default() };
        pick.choose(free, &loads, wait, draw, turn)
    }

    fn all(size: usize) -> FreeSet {
        let set = FreeSet::new(size);
        (0..size).for_each(|number| set.set(number, true));
        set
    }

    /// Enough draws to reach every pair of a small fleet.
    fn draws() -> impl Iterator<Item = u64> {
        (0..64u64).map(|n| n | (n / 8) << 32)
    }

    #[test]
    fn every_pick_reaches_everyone_who_is_as_good_and_nobody_who_has_no_room() {
        let free = all(5);
        free.set(3, false);
        for pick in Pick::ALL {
            let mut seen = [0; 5];
            for (turn, draw) in draws().enumerate() {
                seen[choose(pick, &free, &[1; 5], draw, turn as u64).unwrap()] += 1;
            }
            assert_eq!(seen.map(|times| times > 0), [true, true, true, false, true], "{pick:?}");
        }
    }

    #[test]
    fn the_cheaper_of_two_and_the_least_loaded_win() {
        let free = all(2);
        for pick in [Pick::PowerOfTwo, Pick::LeastLoaded, Pick::Direct] {
            assert!(draws().all(|draw| choose(pick, &free, &[9, 1], draw, 0) == Some(1)));
        }
    }

    #[test]
    fn of_many_upstreams_every_free_one_is_as_likely_however_few_they_are() {
        for step in [1, 3, 50] {
            let free = FreeSet::new(600);
            (0..600).step_by(step).for_each(|number| free.set(number, true));
            let mut seen = vec![0_u32; 600];
            let mut rng = Rng::new(7);
            let mean = 200;
            for _ in 0..free.len() * mean {
                let chosen = choose(Pick::PowerOfTwo, &free, &[1; 600], rng.next_u64(), 0);
                seen[chosen.unwrap()] += 1;
            }
            for (number, times) in seen.iter().enumerate() {
                // Five standard deviations of a count with this mean.
                let expected = if free.contains(number) { 130..=270 } else { 0..=0 };
                assert!(expected.contains(times), "{number}: {times} with every {step}th free");
            }
        }
    }

    #[test]
    fn nobody_is_chosen_where_nobody_is() {
        let nobody = FreeSet::new(9);
        for pick in Pick::ALL {
            assert_eq!(choose(pick, &nobody, &[], 7, 7), None, "{pick:?}");
        }
    }
}
