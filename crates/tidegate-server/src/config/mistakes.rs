use super::Origin;
use std::fmt;

/// Longest piece of foreign text that is repeated in a message, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The key it is about, such as `admission.high_limit` or `client[2].token`; entries count from 1.
    pub field: String,
    /// Where it was said.
    pub origin: Origin,
    /// What was given; never a secret.
    pub given: String,
    /// What would be right, with unit and range.
    pub allowed: String,
    /// The nearest thing that exists, when the name or word is unknown.
    pub suggestion: Option<String>,
}

/// Everything that is wrong with the configuration, at least one mistake; in the order of the file, then of
/// the environment, then of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

/// Collects mistakes while reading goes on.
#[derive(Debug, Default)]
pub(super) struct Ledger(Vec<Mistake>);

// === impl Mistake ===

impl Mistake {
    pub(super) fn new(
        field: impl Into<String>,
        origin: &Origin,
        given: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            origin: origin.clone(),
            given: given.into(),
            allowed: allowed.into(),
            suggestion: None,
        }
    }

    pub(super) fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, origin, given, allowed, suggestion } = self;
        write!(f, "{} ({origin}): given {given}; allowed: {allowed}", one_line(field))?;
        match suggestion {
            Some(suggestion) => write!(f, "; did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

// === impl Mistakes ===

impl Mistakes {
    /// The mistakes one by one.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }

    /// How many there are; never 0.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.len() == 1 { "mistake" } else { "mistakes" };
        write!(f, "{} {plural} in the configuration:", self.0.len())?;
        self.0.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl std::error::Error for Mistakes {}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn add(&mut self, mistake: Mistake) {
        self.0.push(mistake);
    }

    /// `Ok` when nothing was wrong.
    pub(super) fn settle(mut self) -> Result<(), Mistakes> {
        if self.0.is_empty() {
            return Ok(());
        }
        self.0.sort_by(|a, b| a.origin.cmp(&b.origin));
        Err(Mistakes(self.0))
    }
}

/// Foreign text in quotes, on one line and not too long.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text))
}

fn one_line(text: &str) -> String {
    let mut chars = text.chars();
    let mut line: String =
        chars.by_ref().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// The candidate that `given` was probably meant to be: within a third of its length, at least two letters.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A name of any length may stand in a file; the distance is quadratic in it.
    if given.len() > QUOTED_CHARS_MAX {
        return None;
    }
    let given = given.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let whole = strsim::damerau_levenshtein(&given, &candidate);
        // Most often the section is forgotten or the wrong one.
        let (last_given, last) = (last_part(&given), last_part(&candidate));
        if last.len() < candidate.len() {
            whole.min(strsim::damerau_levenshtein(last_given, last).saturating_add(1))
        } else {
            whole
        }
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, _)| *distance <= (given.chars().count() / 3).max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
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
    }

    #[test]
    fn a_message_stays_on_one_line_whatever_is_quoted() {
        let mistake = Mistake::new("a\nb", &Origin::Default, quoted(&"x\n".repeat(99)), "less");
        let line = mistake.to_string();
        assert_eq!(line.lines().count(), 1);
        assert!(line.contains('…') && line.len() < 400, "{line}");
    }
}
