#[cfg(feature = "ingest")]
use crate::suggestion::nearest;

/// Finds the runtime that a task names: the one of that name, or without the version at the end of it, as
/// `python3` and `python3.12` are for `python`.
///
/// ```
/// use tidegate_core::task::find_runtime;
///
/// let known = ["python", "sh", "node20"];
/// assert_eq!(find_runtime("sh", known), Some("sh"));
/// assert_eq!(find_runtime("python3.12", known), Some("python"));
/// assert_eq!(find_runtime("node20", known), Some("node20"), "a name may have a version");
/// assert_eq!(find_runtime("3", known), None);
/// ```
#[must_use]
pub fn find_runtime<'a, I>(given: &str, known: I) -> Option<&'a str>
where
    I: IntoIterator<Item = &'a str> + Clone,
{
    let find = |name: &str| known.clone().into_iter().find(|known| *known == name);
    let is_version = |c: char| c.is_ascii_digit() || c == '.';
    find(given).or_else(|| find(given.trim_end_matches(is_version)))
}

/// Returns the end of an error about a runtime that is not known: the one that was probably meant, and all there
/// are.
///
/// ```
/// use tidegate_core::task::runtime_hint;
///
/// let known = ["python".to_owned(), "sh".to_owned()];
/// assert_eq!(runtime_hint("pyhton", &known), "; did you mean \"python\"? available: python, sh");
/// assert_eq!(runtime_hint("cobol", &known), "; available: python, sh");
/// ```
#[cfg(feature = "ingest")]
#[must_use]
pub fn runtime_hint(given: &str, known: &[String]) -> String {
    let meant = nearest(given, known.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("did you mean {meant:?}? ")).unwrap_or_default();
    format!("; {meant}available: {}", known.join(", "))
}
