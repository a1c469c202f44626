use super::Place;

/// Something about tariffs that is allowed, and probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffWarning {
    /// What it is about.
    pub place: Place,
    /// What will happen.
    pub text: String,
}
