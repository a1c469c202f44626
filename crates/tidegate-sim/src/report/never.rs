use serde::Serializer;

/// The JSON value of a time that never came: JSON has no infinity. A missing value is `null`.
pub(super) const NEVER: &str = "never";

/// A figure for machines: a number, or `never`.
pub(super) fn figure<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match value.is_infinite() {
        true => serializer.serialize_str(NEVER),
        false => serializer.serialize_f64(*value),
    }
}

/// A figure for machines that may not be there: a number, `never`, or nothing where nothing was measured.
///
/// # Errors
///
/// Those of the serializer.
pub fn number_or_never<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => figure(value, serializer),
        None => serializer.serialize_none(),
    }
}
