/// Requests through a gateway.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("load_sweep", include_str!("../../../../scenarios/load_sweep.toml")),
    ("low_flood", include_str!("../../../../scenarios/low_flood.toml")),
    ("one_limit", include_str!("../../../../scenarios/one_limit.toml")),
    ("critical_alone", include_str!("../../../../scenarios/critical_alone.toml")),
    ("retry_storm", include_str!("../../../../scenarios/retry_storm.toml")),
    ("slow_upstream", include_str!("../../../../scenarios/slow_upstream.toml")),
    ("failing_upstream", include_str!("../../../../scenarios/failing_upstream.toml")),
    ("dead_upstream", include_str!("../../../../scenarios/dead_upstream.toml")),
    ("cut_upstream", include_str!("../../../../scenarios/cut_upstream.toml")),
    ("capacity_halves", include_str!("../../../../scenarios/capacity_halves.toml")),
    ("noisy_tenant", include_str!("../../../../scenarios/noisy_tenant.toml")),
    ("shared_limits", include_str!("../../../../scenarios/shared_limits.toml")),
    ("kv_shaped", include_str!("../../../../scenarios/kv_shaped.toml")),
    ("bimodal", include_str!("../../../../scenarios/bimodal.toml")),
];
