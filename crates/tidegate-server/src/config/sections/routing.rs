use super::tokens::Variables;
use crate::config::errors::{ErrorList, quoted};
use crate::config::policies::{LoadSource, Orca, OverloadStatus};
use crate::config::schema::record;
use crate::config::value::shape::{
    API_KEY, HEADER, MODEL, MODELS, UPSTREAM_URL, URL_PATH, VARIABLE,
};
use crate::config::value::{ApiKey, LimitSetting, UpstreamTarget};
use http::HeaderName;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::limit::LimitGoal;
use tidegate::routing::{BusyPreset, BusyThresholds, ChargeRule, OnSilence, Pick};

record! {
    /// Selection of an upstream for a request, and the thresholds from which on upstreams are busy.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RoutingConfig from RoutingSettings {
        /// Policy that selects one of the upstreams with capacity.
        pick: Pick = word().or(Pick::PowerOfTwo).flag("pick") => pick;
        /// Busy thresholds for a goal: low latency, high throughput, or none (off).
        preset: BusyPreset = word().or(BusyPreset::Off).flag("busy-preset");
        /// An upstream is busy above this share of its KV cache.
        active_decode_blocks_threshold: Option<f64> = ratio().unit("of the blocks").unset()
            .example("0.85").flag("active-decode-blocks-threshold");
        /// An upstream is busy above this many tokens in prefill.
        active_prefill_tokens_threshold: Option<u64> = whole(0, 1_000_000_000, "tokens")
            .unset().example("10000").flag("active-prefill-tokens-threshold");
        /// The most requests at one rank of an upstream, running and waiting.
        active_requests_threshold: Option<u64> = whole(0, 1_000_000, "requests").unset()
            .example("64").flag("active-requests-threshold");
        /// The most requests at one upstream at once: found (auto), a number, or off. Further requests queue.
        limit: LimitSetting = limit().or(LimitSetting::Auto).flag("limit") => limit;
        /// Goal of a limit that is found: low latency, high throughput, or a balance.
        limit_preset: LimitGoal = word().or(LimitGoal::Balanced).flag("limit-preset")
            => limit_preset;
        /// The part of each admission limit that the requests at one of several upstreams may hold.
        upstream_share: f64 = ratio().or(0.5) => upstream_share;
        /// The most upstreams that may be configured.
        upstreams_max: usize = whole(1, 65_536, "upstreams").or(1_000)
            .env("OUTGOING_MAX_DESTINATIONS");
        /// HTTP status of a refusal because all upstreams are busy.
        overload_status: OverloadStatus = word().or(OverloadStatus::Unavailable)
            .flag("overload-status") => overload_status;
        /// Source of load: scrapes of metrics and response headers (scrape), or headers alone.
        load_source: LoadSource = word().or(LoadSource::Scrape) => load_source;
        /// ORCA load headers of responses: read them, ask upstreams for them too, or ignore them (off).
        orca: Orca = word().or(Orca::Read) => orca;
        /// Time between two scrapes of an upstream's metrics.
        scrape_interval_ms: Duration = millis(10, 10 * MINUTE_MS).or_ms(250) => scrape_interval;
        /// Path of the metrics of an upstream.
        metrics_path: String = text(URL_PATH).or("/metrics".to_owned()) => metrics_path;
        /// Lifetime of an upstream's load report.
        report_ttl_ms: Duration = millis(10, HOUR_MS).or_ms(5_000) => report_ttl;
        /// State of an upstream without a load report.
        on_silence: OnSilence = word().or(OnSilence::Free) => on_silence;
        /// Header that names the model of a request; without it the gateway reads the JSON body.
        model_header: HeaderName = text(HEADER).or(HeaderName::from_static("tidegate-model"))
            => model_header;
        /// Header that tells an upstream the rank it was charged for; vLLM takes X-data-parallel-rank.
        rank_header: Option<HeaderName> = text(HEADER).unset().example("X-data-parallel-rank")
            => rank_header;
        /// Bytes of a body that are read to find the model; 0 reads none.
        model_peek_bytes: usize = whole(0, 1 << 24, "bytes").or(65_536) => model_peek_bytes;
        /// Bytes of a request that count as one token.
        bytes_per_token: u64 = whole(1, 1_024, "bytes").or(4);
        /// Tokens that share a block of KV cache.
        tokens_per_block: u64 = whole(1, 65_536, "tokens").or(16);
    }
    derived |settings| {
        /// Busy thresholds for models without an entry of their own. Default none.
        thresholds: BusyThresholds = BusyThresholds {
            active_decode_blocks: settings.active_decode_blocks_threshold.get(),
            active_prefill_tokens: settings.active_prefill_tokens_threshold.get(),
            active_requests: settings.active_requests_threshold.get(),
        }
        .or(settings.preset.get().thresholds());
        /// Busy thresholds by model. Default none.
        models: BTreeMap<String, BusyThresholds> = BTreeMap::new();
        /// Rule that estimates the cost of a request from its size.
        charge: ChargeRule = ChargeRule {
            bytes_per_token: settings.bytes_per_token.get(),
            tokens_per_block: settings.tokens_per_block.get(),
        };
    }
}

record! {
    /// The queue of the requests that wait for an upstream of their model.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QueueConfig from QueueSettings {
        /// The most requests queued for one model; 0 refuses every request that finds no slot.
        size: usize = whole(0, 1_000_000, "requests")
            .or_by_role(tidegate::Role::outgoing_queue_size).env("OUTGOING_QUEUE_SIZE")
            .flag("queue-size") => size;
        /// Additional queue positions for a burst.
        overflow_size: usize = whole(0, 1_000_000, "requests").or(100)
            .env("OUTGOING_OVERFLOW_SIZE") => overflow_size;
        /// The longest time that a request may be queued before it is refused.
        wait_max_ms: Duration = millis(1, HOUR_MS).or_ms(5_000).flag("queue-wait-ms") => wait_max;
        /// Of this many requests, one of a lower priority is served although a higher one waits; 0 for none.
        starvation_guard: u32 = whole(0, 1_000_000, "requests").or(0) => starvation_guard;
    }
}

record! { UpstreamSettings {
    /// Scheme http (HTTP/1.1; gRPC by h2c), h2c (HTTP/2 without TLS) or https; host and port.
    url: String = text(UPSTREAM_URL).required().example("http://127.0.0.1:9001");
    /// Models that it serves. Default those that its /v1/models lists, or any.
    models: Option<Vec<String>> = texts(MODELS).unset();
    /// The most requests at it at once: auto, a number, or off. Default the limit of `[routing]`.
    limit: Option<LimitSetting> = limit().unset().example("8");
    /// Goal of its limit if that is found. Default the preset of `[routing]`.
    limit_preset: Option<LimitGoal> = word().unset().example("latency");
    /// Environment variable with its own key, sent with `proxy.authorization = "replace"`.
    api_key_env: Option<String> = text(VARIABLE).unset();
}}

record! { ModelSettings {
    /// Name of the model as in requests.
    name: String = text(MODEL).required().example("Qwen/Qwen3-0.6B");
    /// Busy thresholds for a goal, as in `[routing]`.
    preset: Option<BusyPreset> = word().unset();
    /// Share of the KV cache above which an upstream is busy.
    active_decode_blocks_threshold: Option<f64> = ratio().unset().example("0.85");
    /// Tokens in prefill above which an upstream is busy.
    active_prefill_tokens_threshold: Option<u64> = whole(0, 1_000_000_000, "tokens")
        .unset().example("10000");
    /// The most requests at one rank of an upstream.
    active_requests_threshold: Option<u64> = whole(0, 1_000_000, "requests").unset();
}}

/// The upstreams of the list, each host and port once.
pub fn upstreams(
    list: &[UpstreamSettings],
    variables: Variables<'_>,
    errors: &mut ErrorList,
) -> Vec<UpstreamTarget> {
    let mut targets = Vec::new();
    let mut names = BTreeMap::new();
    for (entry, number) in list.iter().zip(1..) {
        let api_key = variables.secret(&entry.api_key_env, API_KEY, errors);
        let Some(url) = entry.url.required(errors) else { continue };
        let Ok(mut target) = UpstreamTarget::parse(&url) else { continue };
        target.models = entry.models.get();
        target.limit = entry.limit.get();
        target.limit_preset = entry.limit_preset.get();
        target.api_key = api_key.as_deref().map(ApiKey::new);
        if let Some(first) = names.insert(target.name.clone(), number) {
            let allowed = format!("each host and port once: upstream[{first}] is the same");
            errors.push(entry.url.error(quoted(&url), allowed));
        }
        targets.push(target);
    }
    targets
}

/// Thresholds by model. An entry without a preset inherits the general thresholds that it does not set.
pub fn models(
    list: &[ModelSettings],
    general: BusyThresholds,
    errors: &mut ErrorList,
) -> BTreeMap<String, BusyThresholds> {
    let mut models = BTreeMap::new();
    for entry in list {
        let Some(name) = entry.name.required(errors) else { continue };
        let own = BusyThresholds {
            active_decode_blocks: entry.active_decode_blocks_threshold.get(),
            active_prefill_tokens: entry.active_prefill_tokens_threshold.get(),
            active_requests: entry.active_requests_threshold.get(),
        };
        let thresholds = own.or(entry.preset.get().map_or(general, BusyPreset::thresholds));
        if models.insert(name.clone(), thresholds).is_some() {
            errors.push(entry.name.error(quoted(&name), "each model once"));
        }
    }
    models
}
