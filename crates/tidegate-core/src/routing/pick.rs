use super::{FreeSet, Loads};
use serde::{Deserialize, Serialize};

/// How a worker is chosen among those that have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    /// The better of two drawn at random, by what they have in flight times how long they take.
    #[default]
    PowerOfTwo,
    /// One after the other.
    RoundRobin,
    /// Any.
    Random,
    /// The one with the fewest requests.
    LeastLoaded,
    /// The one that the request names; otherwise as [`Pick::PowerOfTwo`].
    Direct,
}

/// What a pick needs to know of candidates, by their numbers.
pub trait Candidates {
    /// In flight times latency. Lower is better.
    fn cost(&self, number: usize) -> u64;
    /// How many requests each of those that have room has.
    fn loads(&self) -> &Loads;
}

// === impl Pick ===

impl Pick {
    /// Every pick.
    pub const ALL: [Self; 5] =
        [Self::PowerOfTwo, Self::RoundRobin, Self::Random, Self::LeastLoaded, Self::Direct];

    /// Chooses among the members of `free`, with one random number and the number of this turn.
    ///
    /// `None` when nobody is there, also because the last one left while it was looked at.
    #[must_use]
    pub fn choose(
        self,
        free: &FreeSet,
        candidates: &impl Candidates,
        chance: u64,
        turn: u64,
    ) -> Option<usize> {
        match self {
            Self::PowerOfTwo | Self::Direct => better_of_two(free, candidates, chance),
            Self::RoundRobin => {
                let size = free.len().max(1) as u64;
                free.nth((turn % size) as usize).or_else(|| free.next_from(0))
            }
            Self::Random => {
                let size = free.len().max(1) as u64;
                free.nth((chance % size) as usize).or_else(|| free.next_from(0))
            }
            Self::LeastLoaded => candidates.loads().least(chance as u32 as usize),
        }
    }
}

fn better_of_two(free: &FreeSet, candidates: &impl Candidates, chance: u64) -> Option<usize> {
    let size = free.len();
    if size < 2 {
        return free.next_from(0);
    }
    let first = chance as u32 as usize % size;
    // Never the same twice: an offset of 1 … size − 1.
    let offset = 1 + (chance >> 32) as usize % (size - 1);
    let (a, b) = match (free.nth(first), free.nth((first + offset) % size)) {
        (Some(a), Some(b)) => (a, b),
        (one, other) => return one.or(other).or_else(|| free.next_from(0)),
    };
    Some(if candidates.cost(a) <= candidates.cost(b) { a } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Costs(Vec<u64>, Loads);

    fn costs(costs: &[u64], free: &FreeSet) -> Costs {
        let loads = Loads::new(costs.len());
        free.iter().for_each(|number| loads.set(number, Some(costs[number])));
        Costs(costs.to_vec(), loads)
    }

    impl Candidates for Costs {
        fn cost(&self, number: usize) -> u64 {
            self.0[number]
        }

        fn loads(&self) -> &Loads {
            &self.1
        }
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
        let equal = costs(&[1; 5], &free);
        for pick in Pick::ALL {
            let mut seen = [0; 5];
            for (turn, chance) in draws().enumerate() {
                seen[pick.choose(&free, &equal, chance, turn as u64).unwrap()] += 1;
            }
            assert_eq!(seen.map(|times| times > 0), [true, true, true, false, true], "{pick:?}");
        }
    }

    #[test]
    fn the_cheaper_of_two_and_the_least_loaded_win() {
        let free = all(2);
        let costs = costs(&[9, 1], &free);
        for pick in [Pick::PowerOfTwo, Pick::LeastLoaded, Pick::Direct] {
            assert!(draws().all(|chance| pick.choose(&free, &costs, chance, 0) == Some(1)));
        }
    }

    #[test]
    fn nobody_is_chosen_where_nobody_is() {
        let nobody = FreeSet::new(9);
        for pick in Pick::ALL {
            assert_eq!(pick.choose(&nobody, &costs(&[], &nobody), 7, 7), None, "{pick:?}");
        }
    }
}
