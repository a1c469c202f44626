/// Generation of a node that starts, or that was declared down and comes back: greater than every earlier one of
/// this node, also after its clock was set back.
///
/// Members accept a node again only with a greater generation. One that is taken from the clock alone would lock a
/// node out whose clock was set back, until the old time is reached again.
///
/// ```
/// use tidegate_core::membership::next_generation;
///
/// assert_eq!(next_generation(None, 1_000), 1_000);
/// assert_eq!(next_generation(Some(1_000), 5_000), 5_000);
/// assert_eq!(next_generation(Some(5_000), 1_000), 5_001);
/// ```
#[must_use]
pub fn next_generation(persisted: Option<u64>, unix_ms: u64) -> u64 {
    persisted.map_or(unix_ms, |persisted| unix_ms.max(persisted.saturating_add(1)))
}
