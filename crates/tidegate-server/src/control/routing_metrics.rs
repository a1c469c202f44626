use super::exposition::Exposition;
use crate::gateway::Shared;
use crate::upstream::UpstreamStats;
use tidegate::outbox::QueueState;
use tidegate::routing::{ModelStats, RankStats};

/// The outbox of every destination.
pub(super) fn outboxes(out: &mut Exposition, shared: &Shared, stats: &[UpstreamStats]) {
    let mut states =
        out.gauge("tidegate_outbox_state", "1 for the state of a destination's outbox, else 0.");
    for upstream in stats {
        for state in QueueState::ALL {
            let name = state.name().to_ascii_lowercase();
            let labels = [("destination", upstream.name.as_str()), ("state", name.as_str())];
            states.with(&labels, u8::from(upstream.outbox.queue.state == state));
        }
    }
    let mut level = out.gauge(
        "tidegate_outbox_backpressure_level",
        "What a destination asks for: 0 nothing, 1 throttle, 2 batch, 3 reject.",
    );
    for upstream in stats {
        let queue = &upstream.outbox.queue;
        level.with(&[("destination", &upstream.name)], queue.backpressure_level.index());
    }
    let mut sizes =
        out.gauge("tidegate_outbox_size", "Requests that wait for a destination, by part.");
    for upstream in stats {
        let queue = &upstream.outbox.queue;
        let parts = [
            ("primary", queue.primary_size),
            ("overflow", queue.overflow_size),
            ("control", queue.control_size),
        ];
        for (part, size) in parts {
            sizes.with(&[("destination", upstream.name.as_str()), ("part", part)], size);
        }
    }
    let mut enqueued =
        out.counter("tidegate_outbox_enqueued_total", "Requests that a destination's outbox took.");
    for upstream in stats {
        enqueued.with(&[("destination", &upstream.name)], upstream.outbox.queue.total_enqueued);
    }
    let mut dropped =
        out.counter("tidegate_outbox_dropped_total", "Waiting requests that made room for others.");
    for upstream in stats {
        dropped.with(&[("destination", &upstream.name)], upstream.outbox.queue.total_dropped);
    }
    let mut refused =
        out.counter("tidegate_outbox_refused_total", "Requests that found an outbox full.");
    for upstream in stats {
        refused.with(&[("destination", &upstream.name)], upstream.outbox.queue.total_refused);
    }
    out.gauge("tidegate_slow_destinations", "Destinations in overflow or saturated.")
        .value(shared.slow.holding());
}

/// Every model: its workers, and when they count as busy.
pub(super) fn models(out: &mut Exposition, models: &[ModelStats]) {
    let mut workers = out.gauge("tidegate_workers", "Workers that serve a model.");
    for model in models {
        workers.with(&[("model", &model.model)], model.workers);
    }
    let mut up = out.gauge("tidegate_workers_up", "Of these, those that can be reached.");
    for model in models {
        up.with(&[("model", &model.model)], model.up);
    }
    let mut busy = out.gauge("tidegate_workers_busy", "Of these, up and without room.");
    for model in models {
        busy.with(&[("model", &model.model)], model.busy);
    }
    let mut advice = out.gauge(
        "tidegate_busy_retry_after_seconds",
        "What a request that finds all workers of a model busy is told to wait, on average.",
    );
    for model in models {
        advice.with(&[("model", &model.model)], model.retry_after_ms as f64 / 1e3);
    }
    let mut thresholds = out.gauge(
        "tidegate_busy_threshold",
        "Above this a model's workers are busy; missing where the check is off.",
    );
    for model in models {
        let set = [
            ("active_decode_blocks", model.thresholds.active_decode_blocks),
            ("active_prefill_tokens", model.thresholds.active_prefill_tokens.map(|n| n as f64)),
            ("active_requests", model.thresholds.active_requests.map(|n| n as f64)),
        ];
        for (threshold, value) in set {
            if let Some(value) = value {
                let labels = [("model", model.model.as_str()), ("threshold", threshold)];
                thresholds.with(&labels, value);
            }
        }
    }
}

/// What every rank of every worker told of its load, while that is believed.
pub(super) fn workers(out: &mut Exposition, stats: &[UpstreamStats]) {
    let mut known = out.gauge(
        "tidegate_worker_load_known",
        "1 while a worker's load is known, 0 if it told before; missing if it never did.",
    );
    let tells = |upstream: &&UpstreamStats| {
        upstream.load.ranks.iter().any(|rank| rank.report_age_ms.is_some())
    };
    for upstream in stats.iter().filter(tells) {
        known.with(&[("worker", &upstream.name)], u8::from(upstream.load.load_known));
    }
    let mut kinds =
        out.gauge("tidegate_worker_kind_info", "1, with the kind of server that was recognised.");
    for upstream in stats {
        let kind = upstream.load_source.kind;
        kinds.with(&[("worker", upstream.name.as_str()), ("kind", kind)], 1);
    }
    let mut latency = out.gauge(
        "tidegate_worker_latency_seconds",
        "How long a worker takes to begin an answer; refusals count as slow.",
    );
    for upstream in stats {
        latency.with(&[("worker", &upstream.name)], upstream.load.latency_us as f64 / 1e6);
    }
    let mut each = |name, help, value: fn(&RankStats) -> Option<f64>| {
        let mut series = out.gauge(name, help);
        for upstream in stats {
            for rank in &upstream.load.ranks {
                let number = rank.rank.to_string();
                if let Some(value) = value(rank) {
                    series.with(&[("worker", upstream.name.as_str()), ("rank", &number)], value);
                }
            }
        }
    };
    each("tidegate_active_decode_blocks", "KV cache blocks in use, as a rank told.", |rank| {
        rank.report?.active_decode_blocks.map(|blocks| blocks as f64)
    });
    each("tidegate_kv_total_blocks", "KV cache blocks there are, as a rank told.", |rank| {
        rank.report?.kv_total_blocks.map(|blocks| blocks as f64)
    });
    each(
        "tidegate_active_prefill_tokens",
        "Tokens being prefilled at a rank, with what was sent since it told.",
        |rank| Some(rank.prefill_tokens as f64),
    );
    each(
        "tidegate_active_requests",
        "Requests at a rank, with what was sent since it told.",
        |rank| Some(rank.requests as f64),
    );
    each("tidegate_load_report_age_seconds", "How old a rank's word about its load is.", |rank| {
        rank.report_age_ms.map(|age_ms| age_ms as f64 / 1e3)
    });
}
