use crate::support::{env, only};
use std::time::Duration;
use tidegate_server::config::{Config, LimitSetting, Loader, config_flags};

const ROUTING: &str = r#"
dry_run = true
[routing]
preset = "latency"
active_decode_blocks_threshold = 0.8
pick = "least_loaded"
on_silence = "busy"
overload_status = "529"
model_header = "X-Model"
limit = 32
upstream_share = 0.25
[queue]
overflow_size = 7
starvation_guard = 10
[[model]]
name = "Qwen/Qwen3-0.6B"
preset = "throughput"
active_prefill_tokens_threshold = 7
[[upstream]]
url = "http://a:1"
models = ["Qwen/Qwen3-0.6B", "other"]
limit = 8
[[upstream]]
url = "http://b:1"
[[upstream]]
url = "http://c:1"
limit = "off"
[[client]]
name = "batch"
token = "0123456789abcdef"
weight = 3
[[client]]
name = "other"
token = "fedcba9876543210"
[[route]]
path_prefix = "/small"
model = "small"
"#;

#[test]
fn a_file_can_set_busy_thresholds_presets_and_models() {
    let config = Config::from_toml(ROUTING).unwrap();
    assert!(config.dry_run);
    let routing = &config.routing;
    assert_eq!(routing.thresholds.active_decode_blocks, Some(0.8), "wins over the preset");
    assert_eq!(routing.thresholds.active_prefill_tokens, Some(5_000), "the preset's");
    let model = routing.models["Qwen/Qwen3-0.6B"];
    assert_eq!(model.active_decode_blocks, Some(0.95));
    assert_eq!(model.active_prefill_tokens, Some(7));
    assert_eq!(routing.model_header, "x-model");
    assert_eq!(config.upstreams[0].models.as_ref().unwrap().len(), 2);
    assert_eq!(config.upstreams[1].models, None);
    assert_eq!(config.routes[0].model.as_deref(), Some("small"));
}

#[test]
fn a_file_can_set_limits_queues_and_weights() {
    let config = Config::from_toml(ROUTING).unwrap();
    assert_eq!(config.routing.limit, LimitSetting::Fixed(32));
    assert_eq!(config.routing.upstream_share, 0.25);
    let limits: Vec<_> = config.upstreams.iter().map(|upstream| upstream.limit).collect();
    assert_eq!(limits, [Some(LimitSetting::Fixed(8)), None, Some(LimitSetting::Off)]);
    let queue = &config.queue;
    assert_eq!((queue.size, queue.overflow_size, queue.starvation_guard), (1000, 7, 10));
    let weights: Vec<_> = config.claims.clients.iter().map(|client| client.weight).collect();
    assert_eq!(weights, [3, 1]);
}

#[test]
fn without_settings_the_limit_is_found_and_the_queue_is_by_role() {
    let config = Config::from_toml("").unwrap();
    assert_eq!(config.routing.limit, LimitSetting::Auto);
    assert_eq!(config.routing.upstream_share, 0.5);
    let queue = &config.queue;
    assert_eq!((queue.size, queue.overflow_size, queue.starvation_guard), (1000, 100, 0));
    assert_eq!(queue.wait_max, Duration::from_secs(5));
    for (role, size) in [("manager", 500), ("worker", 250)] {
        let config = Config::from_toml(&format!("role = \"{role}\"")).unwrap();
        assert_eq!(config.queue.size, size, "{role}");
    }
    let disabled = Config::from_toml("[queue]\nsize = 0").unwrap();
    assert_eq!(disabled.queue.size, 0, "nothing may wait");
}

#[test]
fn a_limit_is_a_number_from_1_on_or_auto_or_off() {
    let upstream = "[[upstream]]\nurl = \"http://a\"\n";
    for given in ["0", "-1", "1.5", "1000001", "true", "\"none\"", "\"\"", "[1]"] {
        for (before, field) in [("[routing]\n", "routing.limit"), (upstream, "upstream[1].limit")] {
            let error = only(&format!("{before}limit = {given}"));
            assert_eq!(error.field, field, "{given}");
            assert!(error.allowed.contains("\"auto\", \"off\""), "{error}");
            assert!(error.allowed.ends_with("a whole number, 1 … 1000000 requests"), "{error}");
        }
    }
    assert_eq!(only("[routing]\nlimit = \"of\"").suggestion.as_deref(), Some("\"off\""));
    for (given, limit) in [
        ("1", LimitSetting::Fixed(1)),
        ("1000000", LimitSetting::Fixed(1_000_000)),
        ("\"auto\"", LimitSetting::Auto),
        ("\"off\"", LimitSetting::Off),
    ] {
        let config = Config::from_toml(&format!("[routing]\nlimit = {given}")).unwrap();
        assert_eq!(config.routing.limit, limit, "{given}");
        let config = Config::from_toml(&format!("{upstream}limit = {given}")).unwrap();
        assert_eq!(config.upstreams[0].limit, Some(limit), "{given}");
    }
}

#[test]
fn settings_of_the_queue_and_weights_out_of_range_are_errors() {
    for (toml, field, allowed) in [
        ("[queue]\nsize = -1", "queue.size", "whole number"),
        ("[queue]\nsize = 1000001", "queue.size", "0 … 1000000"),
        ("[queue]\noverflow_size = 1.5", "queue.overflow_size", "whole number"),
        ("[queue]\nwait_max_ms = 0", "queue.wait_max_ms", "1 …"),
        ("[queue]\nstarvation_guard = -1", "queue.starvation_guard", "0 … 1000000"),
        ("[routing]\nupstream_share = 1.5", "routing.upstream_share", "1.0"),
        ("[routing]\nupstreams_max = 0", "routing.upstreams_max", "1 …"),
    ] {
        let error = only(toml);
        assert_eq!(error.field, field);
        assert!(error.allowed.contains(allowed), "{error}");
    }
    for weight in ["0", "1001", "1.5", "\"high\""] {
        let error = only(&format!(
            "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"\nweight = {weight}"
        ));
        assert_eq!(error.field, "client[1].weight");
        assert!(error.allowed.contains("1 … 1000"), "{error}");
    }
}

#[test]
fn misspelt_settings_are_errors_with_the_nearest_key() {
    let share = only("[routing]\nupsteam_share = 0.5");
    assert_eq!(share.suggestion.as_deref(), Some("routing.upstream_share"), "{share}");
    let size = only("[queue]\nqueue_size = 5");
    assert_eq!(size.field, "queue.queue_size", "{size}");
}

#[test]
fn thresholds_out_of_range_and_repeated_models_are_errors() {
    let over = only("[routing]\nactive_decode_blocks_threshold = 1.5");
    assert!(over.allowed.contains("0.0 … 1.0"), "{over}");
    let negative = only("[routing]\nactive_prefill_tokens_threshold = -1");
    assert!(negative.allowed.contains("whole number"), "{negative}");
    let twice = only("[[model]]\nname = \"m\"\n[[model]]\nname = \"m\"");
    assert_eq!(
        (twice.field.as_str(), twice.allowed.as_str()),
        ("model[2].name", "each model once")
    );
    assert!(only("[[upstream]]\nurl = \"http://a\"\nmodels = [1]").given.contains("array"));
    let many = "[routing]\nupstreams_max = 1\n[[upstream]]\nurl = \"http://a\"\n[[upstream]]\nurl = \"http://b\"";
    assert!(only(many).allowed.contains("routing.upstreams_max"));
}

#[test]
fn the_queue_has_its_established_environment_names() {
    let variables = env(&[
        ("OUTGOING_QUEUE_SIZE", "7"),
        ("OUTGOING_OVERFLOW_SIZE", "3"),
        ("OUTGOING_MAX_DESTINATIONS", "1"),
        ("TIDEGATE_ROUTING_LIMIT", "12"),
    ]);
    let config = Loader::new().env(variables.clone()).load().unwrap().config;
    assert_eq!((config.queue.size, config.queue.overflow_size), (7, 3));
    assert_eq!(config.routing.limit, LimitSetting::Fixed(12));
    let two = env(&[("TIDEGATE_UPSTREAM", "http://a,http://b")]);
    let errors = Loader::new().env([variables, two].concat()).load().unwrap_err();
    assert!(errors.to_string().contains("routing.upstreams_max"), "{errors}");
}

#[test]
fn limit_and_queue_have_flags() {
    let flag = |name, key, value| Loader::new().flag(name, key, value).load();
    let config = flag("--limit", "routing.limit", "9").unwrap().config;
    assert_eq!(config.routing.limit, LimitSetting::Fixed(9));
    let config = flag("--limit", "routing.limit", "off").unwrap().config;
    assert_eq!(config.routing.limit, LimitSetting::Off);
    assert!(flag("--limit", "routing.limit", "many").is_err());
    let config = flag("--queue-size", "queue.size", "0").unwrap().config;
    assert_eq!(config.queue.size, 0);
    let config = flag("--queue-wait-ms", "queue.wait_max_ms", "70").unwrap().config;
    assert_eq!(config.queue.wait_max, Duration::from_millis(70));
    let flags = config_flags();
    for name in ["limit", "queue-size", "queue-wait-ms"] {
        assert!(flags.iter().any(|flag| flag.name == name), "{name}");
    }
}
