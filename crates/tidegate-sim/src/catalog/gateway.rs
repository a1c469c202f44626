/// Requests through a gateway.
pub(super) const SHIPPED: &[(&str, &str)] =
    &[("load_sweep", include_str!("../../../../scenarios/load_sweep.toml"))];
