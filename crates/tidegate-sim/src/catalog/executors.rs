/// Tasks on executors.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("executors_3x3", include_str!("../../../../scenarios/executors_3x3.toml")),
    ("executors_30x30", include_str!("../../../../scenarios/executors_30x30.toml")),
    ("executors_300x300", include_str!("../../../../scenarios/executors_300x300.toml")),
    ("executors_chaos", include_str!("../../../../scenarios/executors_chaos.toml")),
];
