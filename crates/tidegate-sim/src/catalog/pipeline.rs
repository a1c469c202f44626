/// Records into the pipeline.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("square_wave", include_str!("../../../../scenarios/square_wave.toml")),
    ("sawtooth", include_str!("../../../../scenarios/sawtooth.toml")),
    ("random_bursts", include_str!("../../../../scenarios/random_bursts.toml")),
    ("blocked_store", include_str!("../../../../scenarios/blocked_store.toml")),
    ("slow_store", include_str!("../../../../scenarios/slow_store.toml")),
];
