use crate::gateway::upstream::{SlowUpstreams, UpstreamStats};
use crate::http::Exposition;
use tidegate::outbox::QueueState;
use tidegate::routing::{ModelStats, RankStats};

/// Writes the series of every upstream's outbox.
pub(super) fn outboxes(out: &mut Exposition, slow: &SlowUpstreams, stats: &[UpstreamStats]) {
    let mut states = out.gauge(
        "tidegate_outbox_state",
        "1 for the current state of an upstream's outbox, 0 for the others.",
    );
    for upstream in stats {
        for state in QueueState::ALL {
            let name = state.name().to_ascii_lowercase();
            let labels = [("upstream", upstream.name.as_str()), ("state", name.as_str())];
            states.with(&labels, u8::from(upstream.outbox.queue.state == state));
        }
    }
    let mut level = out.gauge(
        "tidegate_outbox_backpressure_level",
        "Backpressure level of an upstream: 0 none, 1 throttle, 2 batch, 3 reject.",
    );
    for upstream in stats {
        let queue = &upstream.outbox.queue;
        level.with(&[("upstream", &upstream.name)], queue.backpressure_level.index());
    }
    let mut sizes = out
        .gauge("tidegate_outbox_size", "Requests queued for an upstream, by part of its outbox.");
    for upstream in stats {
        let queue = &upstream.outbox.queue;
        let parts = [
            ("primary", queue.primary_size),
            ("overflow", queue.overflow_size),
            ("control", queue.control_size),
        ];
        for (part, size) in parts {
            sizes.with(&[("upstream", upstream.name.as_str()), ("part", part)], size);
        }
    }
    let mut enqueued = out
        .counter("tidegate_outbox_enqueued_total", "Requests that entered an upstream's outbox.");
    for upstream in stats {
        enqueued.with(&[("upstream", &upstream.name)], upstream.outbox.queue.total_enqueued);
    }
    let mut dropped = out
        .counter("tidegate_outbox_dropped_total", "Queued requests that were displaced by others.");
    for upstream in stats {
        dropped.with(&[("upstream", &upstream.name)], upstream.outbox.queue.total_dropped);
    }
    let mut refused =
        out.counter("tidegate_outbox_refused_total", "Requests refused by a full outbox.");
    for upstream in stats {
        refused.with(&[("upstream", &upstream.name)], upstream.outbox.queue.total_refused);
    }
    out.gauge("tidegate_slow_upstreams", "Upstreams whose outbox is in overflow or saturated.")
        .value(slow.holding());
}

/// Writes the series of every model: its upstreams and their busy thresholds.
pub(super) fn models(out: &mut Exposition, models: &[ModelStats]) {
    let mut upstreams = out.gauge("tidegate_upstreams", "Upstreams that serve a model.");
    for model in models {
        upstreams.with(&[("model", &model.model)], model.upstreams);
    }
    let mut up = out.gauge("tidegate_upstreams_up", "Upstreams of a model that can be reached.");
    for model in models {
        up.with(&[("model", &model.model)], model.up);
    }
    let mut busy =
        out.gauge("tidegate_upstreams_busy", "Upstreams of a model that are up and busy.");
    for model in models {
        busy.with(&[("model", &model.model)], model.busy);
    }
    let mut advice = out.gauge(
        "tidegate_busy_retry_after_seconds",
        "Current retry advice while all upstreams of a model are busy.",
    );
    for model in models {
        advice.with(&[("model", &model.model)], model.retry_after_ms as f64 / 1e3);
    }
    let mut thresholds = out.gauge(
        "tidegate_busy_threshold",
        "Busy threshold of a model; missing where the check is off.",
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

/// Writes the series of every upstream's load, from reports that have not expired.
pub(super) fn upstreams(out: &mut Exposition, stats: &[UpstreamStats]) {
    let mut known = out.gauge(
        "tidegate_upstream_load_known",
        "1 while an upstream's load is known, 0 after its last report expired; missing before the first.",
    );
    let has_reported = |upstream: &&UpstreamStats| {
        upstream.load.ranks.iter().any(|rank| rank.report_age_ms.is_some())
    };
    for upstream in stats.iter().filter(has_reported) {
        known.with(&[("upstream", &upstream.name)], u8::from(upstream.load.load_known));
    }
    let mut kinds =
        out.gauge("tidegate_upstream_kind_info", "1, with the recognised kind of server.");
    for upstream in stats {
        let kind = upstream.load_source.kind;
        kinds.with(&[("upstream", upstream.name.as_str()), ("kind", kind)], 1);
    }
    let mut latency = out.histogram(
        "tidegate_upstream_response_start_seconds",
        "Time from a request to the head of an upstream's response.",
    );
    for upstream in stats {
        upstream.response_start.write(&mut latency, &[("upstream", &upstream.name)]);
    }
    let mut each = |name, help, value: fn(&RankStats) -> Option<f64>| {
        let mut series = out.gauge(name, help);
        for upstream in stats {
            for rank in &upstream.load.ranks {
                let number = rank.rank.to_string();
                if let Some(value) = value(rank) {
                    series.with(&[("upstream", upstream.name.as_str()), ("rank", &number)], value);
                }
            }
        }
    };
    each("tidegate_active_decode_blocks", "KV cache blocks in use, as a rank reported.", |rank| {
        rank.report?.active_decode_blocks.map(|blocks| blocks as f64)
    });
    each("tidegate_kv_total_blocks", "KV cache blocks of a rank, as it reported.", |rank| {
        rank.report?.kv_total_blocks.map(|blocks| blocks as f64)
    });
    each(
        "tidegate_active_prefill_tokens",
        "Tokens being prefilled at a rank, with those sent since its last report.",
        |rank| Some(rank.prefill_tokens as f64),
    );
    each(
        "tidegate_active_requests",
        "Requests at a rank, with those sent since its last report.",
        |rank| Some(rank.requests as f64),
    );
    each("tidegate_load_report_age_seconds", "Age of a rank's last load report.", |rank| {
        rank.report_age_ms.map(|age_ms| age_ms as f64 / 1e3)
    });
}
