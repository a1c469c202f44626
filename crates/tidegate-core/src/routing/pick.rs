use super::FreeSet;

/// How a worker is chosen among those that have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

/// What a pick needs to know of candidates, by their numbers. Lower is better.
pub trait Candidates {
    /// In flight times latency.
    fn cost(&self, number: usize) -> u64;
    /// Requests there.
    fn requests(&self, number: usize) -> u64;
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
            Self::LeastLoaded => {
                // Ties go to the next after a random one, or the first would get every burst.
                let start = free.nth((chance % free.len().max(1) as u64) as usize).unwrap_or(0);
                free.iter().min_by_key(|number| (candidates.requests(*number), *number < start))
            }
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

    struct Costs(Vec<u64>);

    impl Candidates for Costs {
        fn cost(&self, number: usize) -> u64 {
            self.0[number]
        }

        fn requests(&self, number: usize) -> u64 {
            self.0[number]
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
        let equal = Costs(vec![1; 5]);
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
        let (free, costs) = (all(2), Costs(vec![9, 1]));
        for pick in [Pick::PowerOfTwo, Pick::LeastLoaded, Pick::Direct] {
            assert!(draws().all(|chance| pick.choose(&free, &costs, chance, 0) == Some(1)));
        }
    }

    #[test]
    fn nobody_is_chosen_where_nobody_is() {
        for pick in Pick::ALL {
            assert_eq!(pick.choose(&FreeSet::new(9), &Costs(vec![]), 7, 7), None, "{pick:?}");
        }
    }
}
