use crate::support::{env, only};
use tidegate_server::config::{Config, Loader};

const ROUTING: &str = r#"
dry_run = true
[routing]
preset = "latency"
active_decode_blocks_threshold = 0.8
pick = "least_loaded"
on_silence = "busy"
overload_status = "529"
model_header = "X-Model"
[outbox]
concurrency = 32
[[model]]
name = "Qwen/Qwen3-0.6B"
preset = "throughput"
active_prefill_tokens_threshold = 7
[[upstream]]
url = "http://a:1"
models = ["Qwen/Qwen3-0.6B", "other"]
[[upstream]]
url = "http://b:1"
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
    assert_eq!((config.outbox.concurrency, config.outbox.queue_size), (32, 1000));
    let worker = Config::from_toml("role = \"worker\"").unwrap();
    assert_eq!(worker.outbox.queue_size, 250, "by role");
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
    let many = "[outbox]\nupstreams_max = 1\n[[upstream]]\nurl = \"http://a\"\n[[upstream]]\nurl = \"http://b\"";
    assert!(only(many).allowed.contains("outbox.upstreams_max"));
}

#[test]
fn the_outbox_has_its_established_environment_names() {
    let variables = env(&[
        ("OUTGOING_QUEUE_SIZE", "7"),
        ("OUTGOING_OVERFLOW_SIZE", "3"),
        ("OUTGOING_MAX_DESTINATIONS", "9"),
    ]);
    let config = Loader::new().env(variables).load().unwrap().config;
    assert_eq!((config.outbox.queue_size, config.outbox.overflow_size), (7, 3));
}
