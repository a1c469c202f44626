use super::choice;
use super::field::Kind;
use super::items::{Item, Items};
use super::mistakes::{Ledger, Mistake, quoted};
use super::settings::Settings;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::routing::{BusyPreset, BusyThresholds, ChargeRule, OnSilence, Pick, Shares};

/// What a model's name looks like, in words.
pub(super) const NAME_SHAPE: &str = "a model's name, 1 … 256 visible characters without commas";
/// The same for several.
pub(super) const NAMES_SHAPE: &str = "a list of models' names, each 1 … 256 visible characters";
/// What a path looks like, in words.
pub(super) const PATH_SHAPE: &str = "a path that starts with \"/\", without query";
/// What the name of a header looks like, in words.
pub(super) const HEADER_SHAPE: &str = "the name of a header";

pub(super) const TOKENS: Kind = Kind::Integer { min: 0, max: 1_000_000_000 };
pub(super) const REQUESTS: Kind = Kind::Integer { min: 0, max: 1_000_000 };

/// Which worker gets a request, and when all are too busy.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingConfig {
    /// How a worker is chosen among those that have room. Default power of two.
    pub pick: Pick,
    /// When workers are busy, for models that have no entry. Default never.
    pub thresholds: BusyThresholds,
    /// The same by model. Default none.
    pub models: BTreeMap<String, BusyThresholds>,
    /// How much of each threshold Normal and Low may use, 0.0 … 1.0. Default 0.95 and 0.9.
    pub shares: Shares,
    /// The HTTP status of a refusal because all are busy. Default 503.
    pub overload_status: OverloadStatus,
    /// How load is learned. Default by scraping.
    pub load: LoadSource,
    /// What is done about ORCA headers. Default they are read.
    pub orca: Orca,
    /// Between two scrapes, 10 ms … 10 min. Default 250 ms.
    pub scrape_interval: Duration,
    /// Where upstreams tell their metrics. Default `/metrics`.
    pub metrics_path: String,
    /// How long a report is believed, 10 ms … 1 h. Default 5 s.
    pub report_ttl: Duration,
    /// What silence means. Default free.
    pub on_silence: OnSilence,
    /// The header that names a request's model. Default `tidegate-model`.
    pub model_header: http::HeaderName,
    /// The header that tells an upstream which of its ranks was charged. Default none.
    pub rank_header: Option<http::HeaderName>,
    /// How much of a body is read to find its model, 0 … 16 MiB. Default 64 KiB.
    pub model_peek_bytes: usize,
    /// How a request's size becomes what it will cost.
    pub charge: ChargeRule,
}

/// What waits for an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxConfig {
    /// Requests sent to one upstream at once, 0 … 65,535. Default 0, no such limit.
    pub concurrency: usize,
    /// Requests that may wait for one upstream, 1 … 1,000,000. Default the role's.
    pub queue_size: usize,
    /// How many more in a burst, 0 … 1,000,000. Default 100.
    pub overflow_size: usize,
    /// How long one may wait, 1 ms … 1 h. Default 5 s.
    pub wait_max: Duration,
    /// How much of each admission limit one upstream's requests may hold, 0.0 … 1.0, where there are several.
    /// Default 0.5.
    pub share: f64,
}

/// The HTTP status of a refusal because all workers are busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverloadStatus {
    /// Service Unavailable.
    #[default]
    Unavailable,
    /// 529, as some model providers say "overloaded".
    Overloaded,
    /// Too Many Requests.
    TooMany,
}

/// How the load of workers is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadSource {
    /// Their metrics are asked for at intervals.
    #[default]
    Scrape,
    /// Only what their answers tell is read; nothing else is sent to them, also not to learn their models.
    Headers,
}

/// What is done about ORCA headers of load in answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orca {
    /// Read where they are.
    #[default]
    Read,
    /// Upstreams are asked to send them.
    Ask,
    /// They pass as they are.
    Off,
}

pub(super) fn routing(settings: &Settings, items: &Items, ledger: &mut Ledger) -> RoutingConfig {
    let header: String = settings.get("routing.model_header");
    let rank_header: Option<String> = settings.optional("routing.rank_header");
    let mut routing = RoutingConfig {
        pick: settings.choice("routing.pick"),
        thresholds: BusyThresholds {
            active_decode_blocks: settings.optional("routing.active_decode_blocks_threshold"),
            active_prefill_tokens: settings.optional("routing.active_prefill_tokens_threshold"),
            active_requests: settings.optional("routing.active_requests_threshold"),
        }
        .or(settings.choice::<BusyPreset>("routing.preset").thresholds()),
        models: BTreeMap::new(),
        shares: Shares {
            normal: settings.get("routing.normal_share"),
            low: settings.get("routing.low_share"),
        },
        overload_status: settings.choice("routing.overload_status"),
        load: settings.choice("routing.load"),
        orca: settings.choice("routing.orca"),
        scrape_interval: settings.millis("routing.scrape_interval_ms"),
        metrics_path: settings.get("routing.metrics_path"),
        report_ttl: settings.millis("routing.report_ttl_ms"),
        on_silence: settings.choice("routing.on_silence"),
        model_header: header.parse().unwrap_or(http::HeaderName::from_static("tidegate-model")),
        rank_header: rank_header.and_then(|name| name.parse().ok()),
        model_peek_bytes: settings.size("routing.model_peek_bytes"),
        charge: ChargeRule {
            bytes_per_token: settings.get("routing.bytes_per_token"),
            tokens_per_block: settings.get("routing.tokens_per_block"),
        },
    };
    routing.models = models(items, routing.thresholds, ledger);
    routing
}

pub(super) fn outbox(settings: &Settings) -> OutboxConfig {
    OutboxConfig {
        concurrency: settings.size("outbox.concurrency"),
        queue_size: settings.size("outbox.queue_size"),
        overflow_size: settings.size("outbox.overflow_size"),
        wait_max: settings.millis("outbox.wait_max_ms"),
        share: settings.get("outbox.share"),
    }
}

fn models(
    items: &Items,
    general: BusyThresholds,
    ledger: &mut Ledger,
) -> BTreeMap<String, BusyThresholds> {
    let mut models = BTreeMap::new();
    for item in items.of("model") {
        let Some(name) = item.required("name", ledger) else { continue };
        if models.insert(name.to_owned(), thresholds(item, general)).is_some() {
            let allowed = "each model once";
            let origin = item.origin_of("name");
            ledger.add(Mistake::new(item.key("name"), origin, quoted(name), allowed));
        }
    }
    models
}

/// What an entry does not say is as for all models, unless it names a preset of its own.
fn thresholds(item: &Item, general: BusyThresholds) -> BusyThresholds {
    let preset = item.text("preset").and_then(choice::from_name::<BusyPreset>);
    let own = BusyThresholds {
        active_decode_blocks: item.get("active_decode_blocks_threshold"),
        active_prefill_tokens: item.get("active_prefill_tokens_threshold"),
        active_requests: item.get("active_requests_threshold"),
    };
    own.or(preset.map_or(general, BusyPreset::thresholds))
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=256).contains(&text.len())
        && !text.chars().any(|c| c.is_control() || c.is_whitespace() || c == ',')
}
