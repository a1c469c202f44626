/// Tasks on executors.
pub(super) const SHIPPED: &[(&str, &str)] = &[];
