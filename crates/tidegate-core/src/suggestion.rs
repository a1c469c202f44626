//! Suggestions for misspelt names ("did you mean …?").
//!
//! Uses an edit distance. Must not know what the names stand for.

/// Longest input that is compared, in bytes: the edit distance is quadratic in it.
const GIVEN_BYTES_MAX: usize = 80;

/// Returns the candidate that `given` was probably meant to be: within a third of its length or two edits.
///
/// Case is ignored. Of a dotted name the last part alone may match, at the cost of one edit, because the section
/// is the part that is forgotten most often.
///
/// ```
/// use tidegate_core::suggestion::nearest;
///
/// let keys = ["admission.high_limit", "admission.low_limit", "log.level", "role"];
/// assert_eq!(nearest("admission.hihg_limit", keys), Some("admission.high_limit"));
/// assert_eq!(nearest("low_limit", keys), Some("admission.low_limit"));
/// assert_eq!(nearest("entirely.something_else", keys), None);
/// ```
#[must_use]
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > GIVEN_BYTES_MAX {
        return None;
    }
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&given, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= (given.chars().count() / 3).max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn distance(given: &str, candidate: &str) -> usize {
    let whole = strsim::damerau_levenshtein(given, candidate);
    let (last_given, last) = (last_part(given), last_part(candidate));
    if last.len() < candidate.len() {
        whole.min(strsim::damerau_levenshtein(last_given, last).saturating_add(1))
    } else {
        whole
    }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_through_typos_and_wrong_sections() {
        let keys = ["admission.high_limit", "admission.low_limit", "log.level", "role"];
        assert_eq!(nearest("admission.hihg_limit", keys), Some("admission.high_limit"));
        assert_eq!(nearest("low_limit", keys), Some("admission.low_limit"));
        assert_eq!(nearest("listen.high_limit", keys), Some("admission.high_limit"));
        assert_eq!(nearest("roles", keys), Some("role"));
        assert_eq!(nearest("entirely.something_else", keys), None);
        assert_eq!(nearest("", ["log.level"]), None);
        assert_eq!(nearest(&"x".repeat(1_000_000), keys), None);
    }
}
