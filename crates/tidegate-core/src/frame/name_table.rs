use crate::usage::text_hash;
use std::sync::Arc;

/// Finds the place of a name in the table of a batch.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    names: Vec<Arc<str>>,
    /// Place + 1 of a name, at its hash or behind it; 0 where nothing is. At most half full.
    places: Vec<u32>,
}

// === impl NameTable ===

impl NameTable {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The place of a name that was added.
    #[inline]
    pub(super) fn find(&self, name: &Arc<str>) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = text_hash(name.as_bytes()) as usize & mask;
        loop {
            let place = self.places[at].checked_sub(1)?;
            let held = &self.names[place as usize];
            if Arc::ptr_eq(held, name) || **held == **name {
                return Some(place);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a name that was not found, and tells its place.
    pub(super) fn add(&mut self, name: &Arc<str>) -> u32 {
        let place = self.names.len();
        self.names.push(Arc::clone(name));
        if self.names.len() * 2 > self.places.len() {
            self.places = vec![0; (self.names.len() * 4).next_power_of_two().max(64)];
            (0..=place).for_each(|place| self.put(place));
        } else {
            self.put(place);
        }
        place as u32
    }

    /// Takes the names back that were added last, down to this many.
    pub(super) fn truncate(&mut self, length: usize) {
        while self.names.len() > length {
            // The last to come: nobody was put behind it because of it, so it leaves no gap.
            if let Some(at) = self.places.iter().position(|at| *at == self.names.len() as u32) {
                self.places[at] = 0;
            }
            self.names.pop();
        }
    }

    /// Forgets all names and keeps the room.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.places.fill(0);
    }

    fn put(&mut self, place: usize) {
        let mask = self.places.len() - 1;
        let mut at = text_hash(self.names[place].as_bytes()) as usize & mask;
        while self.places[at] != 0 {
            at = (at + 1) & mask;
        }
        self.places[at] = place as u32 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is searched from its beginning.
        #[test]
        fn it_finds_what_a_list_finds(
            steps in prop::collection::vec((0_u8..10, 0_u16..300), 1..600),
        ) {
            let (mut table, mut list) = (NameTable::default(), Vec::<Arc<str>>::new());
            for (step, number) in steps {
                let name: Arc<str> = number.to_string().into();
                match step {
                    0 => {
                        let length = list.len().saturating_sub(usize::from(number % 4));
                        list.truncate(length);
                        table.truncate(length);
                    }
                    _ => {
                        let expected = list.iter().position(|held| *held == name);
                        prop_assert_eq!(table.find(&name).map(|place| place as usize), expected);
                        if expected.is_none() {
                            prop_assert_eq!(table.add(&name) as usize, list.len());
                            list.push(name);
                        }
                    }
                }
                prop_assert_eq!(table.len(), list.len());
            }
        }
    }
}
