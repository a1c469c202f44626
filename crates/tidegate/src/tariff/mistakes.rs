use std::fmt;

/// Longest piece of foreign text that is repeated in a message, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// Something that is wrong with a file of tariffs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistake {
    /// On which line, from 1.
    pub line: usize,
    /// What it is about, such as `tariff "standard", window 2, price`; empty when it is about the whole.
    pub about: String,
    /// What is wrong.
    pub wrong: String,
    /// What was expected instead.
    pub expected: String,
    /// What to do about it.
    pub fix: String,
}

/// Everything that is wrong with a file of tariffs, in the order of its lines; at least one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMistakes {
    name: String,
    all: Vec<FileMistake>,
}

/// Something in a file of tariffs that is allowed, and may not be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileWarning {
    /// On which line, from 1.
    pub line: usize,
    /// What it is about, as in [`FileMistake::about`].
    pub about: String,
    /// What will happen.
    pub text: String,
}

// === impl FileMistake ===

impl fmt::Display for FileMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, about, wrong, expected, fix } = self;
        write!(f, "{line}: {}{wrong}; expected {expected}; {fix}", prefix(about))
    }
}

// === impl FileMistakes ===

impl FileMistakes {
    pub(super) fn new(name: String, mut all: Vec<FileMistake>) -> Self {
        all.sort_by_key(|mistake| mistake.line);
        Self { name, all }
    }

    /// The mistakes one by one.
    pub fn iter(&self) -> impl Iterator<Item = &FileMistake> {
        self.all.iter()
    }
}

impl fmt::Display for FileMistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.all.len() == 1 { "mistake" } else { "mistakes" };
        write!(f, "{} {plural} in the tariffs:", self.all.len())?;
        self.all.iter().try_for_each(|mistake| write!(f, "\n  {}:{mistake}", self.name))
    }
}

impl std::error::Error for FileMistakes {}

// === impl FileWarning ===

impl fmt::Display for FileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.line, prefix(&self.about), self.text)
    }
}

fn prefix(about: &str) -> String {
    if about.is_empty() { String::new() } else { format!("{about}: ") }
}

/// Foreign text in quotes, on one line and not too long.
pub(super) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let mut line: String =
        chars.by_ref().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    format!("\"{line}\"")
}

/// The candidate that `given` was probably meant to be: within a third of its length, at least two letters.
pub(super) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A name of any length may stand in a file; the distance is quadratic in it.
    if given.len() > QUOTED_CHARS_MAX {
        return None;
    }
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|one| (strsim::damerau_levenshtein(&given, &one.to_lowercase()), one))
        .filter(|(distance, _)| *distance <= (given.chars().count() / 3).max(2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, one)| one)
}
