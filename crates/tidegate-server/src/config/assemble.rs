use super::checks;
use super::items::Items;
use super::mistakes::{Ledger, Mistake, quoted};
use super::model::{AdmissionConfig, Config, ListenConfig, LogConfig, ProxyConfig, TlsFiles};
use super::settings::{Said, Settings};
use super::{ClaimsConfig, UpstreamTarget, clients, ingest, models, routes, tasks};
use std::collections::BTreeMap;
use std::num::NonZero;
use tidegate::admission::{PriorityLimits, RetryBounds};

/// The configuration that these settings and entries describe. With mistakes in the ledger it is not to be
/// used, but everything has been looked at.
pub(super) fn config(
    settings: &Settings,
    items: &Items,
    env: &BTreeMap<String, String>,
    ledger: &mut Ledger,
) -> Config {
    items.check_lengths(ledger);
    checks::run(settings, items, ledger);
    let clients = clients::read(items, env, ledger);
    Config {
        role: settings.choice("role"),
        dry_run: settings.get("dry_run"),
        listen: listen(settings),
        admission: admission(settings),
        claims: ClaimsConfig { anonymous: settings.choice("claims.anonymous"), clients },
        routes: routes::read(items, ledger),
        routing: models::routing(settings, items, ledger),
        outbox: models::outbox(settings),
        upstreams: upstreams(items, ledger),
        proxy: proxy(settings),
        ingest: ingest::ingest(settings),
        tasks: tasks::tasks(settings, items, ledger),
        log: LogConfig { level: settings.get("log.level"), format: settings.choice("log.format") },
    }
}

/// What holds when nobody says anything.
pub(super) fn defaults() -> Config {
    let mut ledger = Ledger::default();
    let settings = Settings::resolve(&Said::default(), &mut ledger);
    config(&settings, &Items::default(), &BTreeMap::new(), &mut ledger)
}

fn listen(settings: &Settings) -> ListenConfig {
    let tls = settings
        .optional("listen.tls_cert")
        .zip(settings.optional("listen.tls_key"))
        .map(|(cert, key)| TlsFiles { cert, key });
    ListenConfig {
        address: settings.get("listen.address"),
        admin_address: settings.get("listen.admin_address"),
        threads: match settings.size("listen.threads") {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        },
        connections_max: settings.size("listen.connections_max"),
        header_timeout: settings.millis("listen.header_timeout_ms"),
        shutdown_grace: settings.millis("listen.shutdown_grace_ms"),
        tls,
    }
}

fn admission(settings: &Settings) -> AdmissionConfig {
    AdmissionConfig {
        limits: PriorityLimits {
            high: settings.get("admission.high_limit"),
            normal: settings.get("admission.normal_limit"),
            low: settings.get("admission.low_limit"),
            global_limit: settings.get("admission.global_limit"),
            critical_reserve: settings.get("admission.critical_reserve"),
        },
        sharing: settings.choice("admission.sharing"),
        warn_threshold: settings.get("admission.warn_threshold"),
        retry: RetryBounds {
            min: settings.millis("admission.retry_after_min_ms"),
            max: settings.millis("admission.retry_after_max_ms"),
        },
    }
}

fn proxy(settings: &Settings) -> ProxyConfig {
    ProxyConfig {
        connect_timeout: settings.millis("proxy.connect_timeout_ms"),
        response_timeout: settings.millis("proxy.response_timeout_ms"),
        stream_idle_timeout: settings.millis("proxy.stream_idle_timeout_ms"),
        idle_connections_max: settings.size("proxy.idle_connections_max"),
        idle_timeout: settings.millis("proxy.idle_timeout_ms"),
        health_interval: settings.millis("proxy.health_interval_ms"),
        host: settings.choice("proxy.host"),
        forwarded: settings.choice("proxy.forwarded"),
        tls_ca: settings.optional("proxy.tls_ca"),
    }
}

/// The upstreams, each once.
fn upstreams(items: &Items, ledger: &mut Ledger) -> Vec<UpstreamTarget> {
    let mut targets = Vec::new();
    let mut names = BTreeMap::new();
    for item in items.of("upstream") {
        let Some(url) = item.required("url", ledger) else { continue };
        let Ok(mut target) = UpstreamTarget::parse(url) else { continue };
        target.models = item.names("models").map(<[String]>::to_vec);
        if let Some(first) = names.insert(target.name.clone(), item.number()) {
            let allowed = format!("each host and port once: upstream[{first}] is the same");
            ledger.add(Mistake::new(item.key("url"), item.origin_of("url"), quoted(url), allowed));
        }
        targets.push(target);
    }
    targets
}
