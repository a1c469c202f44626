/// Requests through a gateway.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("load_sweep", include_str!("../../../../scenarios/load_sweep.toml")),
    ("low_flood", include_str!("../../../../scenarios/low_flood.toml")),
    ("critical_alone", include_str!("../../../../scenarios/critical_alone.toml")),
    ("retry_storm", include_str!("../../../../scenarios/retry_storm.toml")),
    ("slow_destination", include_str!("../../../../scenarios/slow_destination.toml")),
    ("failing_destination", include_str!("../../../../scenarios/failing_destination.toml")),
    ("dead_destination", include_str!("../../../../scenarios/dead_destination.toml")),
    ("cut_destination", include_str!("../../../../scenarios/cut_destination.toml")),
    ("capacity_halves", include_str!("../../../../scenarios/capacity_halves.toml")),
    ("noisy_tenant", include_str!("../../../../scenarios/noisy_tenant.toml")),
    ("kv_shaped", include_str!("../../../../scenarios/kv_shaped.toml")),
    ("bimodal", include_str!("../../../../scenarios/bimodal.toml")),
];
