use crate::usage::text_hash;
use std::sync::Arc;

/// Index of names in the table of a batch.
#[derive(Debug, Default)]
pub(in crate::frame) struct NameTable {
    names: Vec<Arc<str>>,
    /// Index + 1 of a name, at its hash or after it; 0 where empty. At most half full.
    slots: Vec<u32>,
}

// === impl NameTable ===

impl NameTable {
    pub(in crate::frame) fn len(&self) -> usize {
        self.names.len()
    }

    /// Index of an added name.
    #[inline]
    pub(in crate::frame) fn find(&self, name: &Arc<str>) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = text_hash(name.as_bytes()) as usize & mask;
        loop {
            let index = self.slots[at].checked_sub(1)?;
            let known = &self.names[index as usize];
            if Arc::ptr_eq(known, name) || **known == **name {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a new name and returns its index.
    pub(in crate::frame) fn add(&mut self, name: &Arc<str>) -> u32 {
        let index = self.names.len();
        self.names.push(Arc::clone(name));
        if self.names.len() * 2 > self.slots.len() {
            self.slots = vec![0; (self.names.len() * 4).next_power_of_two().max(64)];
            (0..=index).for_each(|index| self.put(index));
        } else {
            self.put(index);
        }
        index as u32
    }

    /// Removes the names added last, down to `length`.
    pub(in crate::frame) fn truncate(&mut self, length: usize) {
        while self.names.len() > length {
            // The last added name displaced no other, so it leaves no gap.
            if let Some(at) = self.slots.iter().position(|at| *at == self.names.len() as u32) {
                self.slots[at] = 0;
            }
            self.names.pop();
        }
    }

    /// Removes all names and keeps the capacity.
    pub(in crate::frame) fn clear(&mut self) {
        self.names.clear();
        self.slots.fill(0);
    }

    fn put(&mut self, index: usize) {
        let mask = self.slots.len() - 1;
        let mut at = text_hash(self.names[index].as_bytes()) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = index as u32 + 1;
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
                        let expected = list.iter().position(|known| *known == name);
                        prop_assert_eq!(table.find(&name).map(|index| index as usize), expected);
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
