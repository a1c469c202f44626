use crate::gateway::upstream::{SlowModels, UpstreamStats};
use crate::http::Exposition;
use tidegate::outbox::QueueState;
use tidegate::queue::PoolQueueTotals;
use tidegate::routing::{ModelStats, QueueLoad, RankStats};

/// Writes the series of every model's queue.
pub(super) fn queues(out: &mut Exposition, slow: &SlowModels, models: &[ModelStats]) {
    let mut states = out.gauge(
        "tidegate_queue_state",
        "1 for the current state of a model's queue, 0 for the others.",
    );
    for model in models {
        for state in QueueState::ALL {
            let name = state.name().to_ascii_lowercase();
            let labels = [("model", model.model.as_str()), ("state", name.as_str())];
            states.with(&labels, u8::from(model.queue.state == state));
        }
    }
    let mut waiting = out.gauge("tidegate_queue_size", "Requests that wait, by priority.");
    for model in models {
        let QueueLoad { high, normal, low, .. } = model.queue;
        for (priority, size) in [("high", high), ("normal", normal), ("low", low)] {
            let labels = [("model", model.model.as_str()), ("priority", priority)];
            waiting.with(&labels, size);
        }
    }
    let mut queued = out.counter("tidegate_queue_queued_total", "Requests that had to wait.");
    for model in models {
        queued.with(&[("model", &model.model)], model.queue.totals.queued);
    }
    let mut ended = out.counter(
        "tidegate_queue_ended_total",
        "Requests that waited, by the end of their wait: served, displaced, expired, or left by their client.",
    );
    for model in models {
        let PoolQueueTotals { served, displaced, expired, left, .. } = model.queue.totals;
        let ends =
            [("served", served), ("displaced", displaced), ("expired", expired), ("left", left)];
        for (end, count) in ends {
            ended.with(&[("model", model.model.as_str()), ("end", end)], count);
        }
    }
    let mut refused = out.counter(
        "tidegate_queue_refused_total",
        "Requests that were not queued: the queue was full, or the wait too long.",
    );
    for model in models {
        let PoolQueueTotals { refused_full, refused_wait, .. } = model.queue.totals;
        for (cause, count) in [("full", refused_full), ("wait", refused_wait)] {
            refused.with(&[("model", model.model.as_str()), ("cause", cause)], count);
        }
    }
    out.gauge("tidegate_slow_models", "Models whose queue is in overflow or saturated.")
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

/// Writes the series of every upstream's limit.
pub(super) fn limits(out: &mut Exposition, stats: &[UpstreamStats]) {
    let mut limits = out.gauge(
        "tidegate_upstream_limit",
        "The most requests that an upstream is sent at once; missing without a limit.",
    );
    for upstream in stats {
        if let Some(limit) = upstream.load.limit {
            limits.with(&[("upstream", &upstream.name)], limit);
        }
    }
    let mut moves = out.gauge(
        "tidegate_upstream_limit_move_info",
        "1, with the cause of the last change of a limit that is found.",
    );
    for upstream in stats {
        if let Some(found) = upstream.load.found_limit {
            let cause = found.last_move;
            moves.with(&[("upstream", upstream.name.as_str()), ("move", cause)], 1);
        }
    }
    let mut breakers = out.gauge(
        "tidegate_upstream_breaker_open",
        "1 while an upstream does not respond and only probes are sent to it, else 0.",
    );
    for upstream in stats {
        if let Some(found) = upstream.load.found_limit {
            breakers.with(&[("upstream", &upstream.name)], u8::from(found.breaker_open));
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
