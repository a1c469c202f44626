/// Bytes compared at once: the vector width of common processors.
const STRIDE: usize = 16;

/// Iterator over the lines of a block, each with its newline; the last may have none.
pub(super) struct Lines<'b> {
    rest: &'b [u8],
}

/// Index of the first newline.
#[inline]
pub(super) fn find_newline(bytes: &[u8]) -> Option<usize> {
    // Without an early exit the compiler compares many bytes at once.
    let has_newline =
        |stride: &&[u8]| stride.iter().fold(false, |found, byte| found | (*byte == b'\n'));
    let skipped = bytes.chunks_exact(STRIDE).take_while(|stride| !has_newline(stride)).count();
    let start = skipped * STRIDE;
    bytes[start..].iter().position(|byte| *byte == b'\n').map(|at| start + at)
}

// === impl Lines ===

impl<'b> Lines<'b> {
    pub(super) fn of(block: &'b [u8]) -> Self {
        Self { rest: block }
    }
}

impl<'b> Iterator for Lines<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = find_newline(self.rest).map_or(self.rest.len(), |at| at + 1);
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_plain_search_finds(bytes in prop::collection::vec(8_u8..12, 0..400)) {
            let first = bytes.iter().position(|byte| *byte == b'\n');
            prop_assert_eq!(find_newline(&bytes), first);
            let expected: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            prop_assert_eq!(Lines::of(&bytes).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn a_newline_is_found_far_away(before in 0_usize..1_000, behind in 0_usize..200) {
            let mut bytes = vec![b'x'; before + behind];
            bytes.insert(before, b'\n');
            prop_assert_eq!(find_newline(&bytes), Some(before));
        }
    }
}
