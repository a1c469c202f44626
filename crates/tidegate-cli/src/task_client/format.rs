use crate::terminal::printable;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::progress::Histogram;
use tidegate::task::TaskStatus;
use tidegate_server::tasks::manager::{ProgressView, TaskView};

/// Unix time in milliseconds.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Duration in its two largest units.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match seconds {
        0 => format!("{ms} ms"),
        1..10 => format!("{seconds}.{} s", ms % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// Age of a time; 0 for the future, because clocks of two machines may differ.
pub fn ago(then_ms: u64, now_ms: u64) -> String {
    format!("{} ago", span(now_ms.saturating_sub(then_ms)))
}

/// Status of a task in one line.
pub fn status_line(view: &TaskView, now_ms: u64) -> String {
    let mut text = view.status.to_string();
    match view.status {
        TaskStatus::Queued => text += &queue_text(view, now_ms),
        TaskStatus::Provisioning | TaskStatus::Running => {
            if let Some(executor) = &view.executor {
                text += &format!(" on {executor}");
            }
            if let Some(started_ms) = view.started_ms {
                text += &format!(" for {}", span(now_ms.saturating_sub(started_ms)));
            }
        }
        TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Cancelled => {
            if let Some(ran_ms) = view.ran_ms {
                text += &format!(" after {}", span(ran_ms));
            }
        }
    }
    if view.cancel_requested && !view.status.is_over() {
        text += ", cancel requested";
    }
    text
}

fn queue_text(view: &TaskView, now_ms: u64) -> String {
    let mut text = String::new();
    match view.queue_position {
        Some(0) => text += ", next in the queue",
        Some(before) if view.queue_position_at_least => {
            text += &format!(", more than {before} ahead in the queue");
        }
        Some(before) => text += &format!(", queue position {before}"),
        None => {}
    }
    match (view.not_before_ms, view.estimated_wait_ms) {
        (Some(then), _) if then > now_ms => {
            text += &format!(", retry in {}", span(then - now_ms));
        }
        (_, Some(wait_ms)) => text += &format!(", estimated wait {}", span(wait_ms)),
        _ => {}
    }
    text
}

/// Progress of a task in one line: a bar where a total is known, counters with rates, gauges, quantiles of
/// histograms, and the message.
pub fn progress_line(view: &ProgressView) -> String {
    let progress = &view.progress;
    let mut parts = Vec::new();
    match (progress.done, progress.total) {
        (Some(done), Some(total)) if total > 0 => parts.push(bar(done, total, view.done_rate)),
        (Some(done), _) => parts.push(format!("{done} done")),
        _ => {}
    }
    for (name, count) in &progress.counters {
        let rate = view.rates.get(name).map(|rate| format!(" ({}/s)", short(*rate)));
        parts.push(format!("{name} {count}{}", rate.unwrap_or_default()));
    }
    parts.extend(progress.gauges.iter().map(|(name, value)| format!("{name} {}", short(*value))));
    parts.extend(progress.histograms.iter().filter_map(|(name, values)| quantiles(name, values)));
    parts.extend(progress.message.as_deref().map(str::to_owned));
    printable(&parts.join(", "))
}

/// Median and 99th percentile of a histogram, as far as its buckets tell.
fn quantiles(name: &str, values: &Histogram) -> Option<String> {
    let bound = |share| {
        let bound = values.quantile(share)?;
        let highest = values.bounds().last().copied();
        Some(match (bound.is_finite(), highest) {
            (true, _) => format!("≤ {}", short(bound)),
            (false, Some(highest)) => format!("> {}", short(highest)),
            (false, None) => "unknown".to_owned(),
        })
    };
    Some(format!("{name} p50 {}, p99 {}", bound(0.5)?, bound(0.99)?))
}

/// Ten cells, the share, and the time left at the rate so far.
fn bar(done: u64, total: u64, rate: Option<f64>) -> String {
    let share = (done as f64 / total as f64).min(1.0);
    let cells = (share * 10.0).floor() as usize;
    let (full, empty) = ("#".repeat(cells), "-".repeat(10 - cells));
    let left = total.saturating_sub(done) as f64;
    let eta = rate.filter(|rate| *rate > 0.0 && left > 0.0).map(|rate| {
        // A time beyond the range is as good as its bound.
        format!(", {} left", span((left / rate * 1_000.0) as u64))
    });
    format!("[{full}{empty}] {done}/{total} {:.0} %{}", share * 100.0, eta.unwrap_or_default())
}

/// A number with at most four significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.001..1.0 => format!("{value:.3}"),
        1.0..100.0 => format!("{value:.1}"),
        100.0..1e9 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// Reason of the end of a task or its last attempt, with exit code and message.
pub fn end_reason(view: &TaskView) -> Option<String> {
    let reason = view.reason?;
    let mut text = reason.to_string();
    if let Some(code) = view.exit_code {
        text += &format!(" {code}");
    }
    if !view.message.is_empty() {
        text += &format!(": {}", view.message);
    }
    if !view.stopped.is_empty() {
        text += &format!(" (stopped: {})", view.stopped.join(", "));
    }
    Some(text)
}

/// Queued task for tests.
#[cfg(test)]
pub fn example() -> TaskView {
    let json = serde_json::json!({
        "id": "a", "status": "queued", "runtime": "sh", "priority": "normal", "timeout_ms": 60_000,
        "retries": 2, "attempt": 0, "failures": 0, "losses": 0, "submitted_ms": 1_000,
    });
    serde_json::from_value(json).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::task::EndReason;

    #[test]
    fn spans_have_two_units() {
        let table = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (9_990, "9.9 s"),
            (10_999, "10 s"),
            (60_000, "1 min"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h"),
            (3_725_000, "1 h 2 min"),
            (86_400_000, "1 d"),
            (100 * 3_600_000, "4 d 4 h"),
            (u64::MAX, "213503982334 d 14 h"),
        ];
        for (ms, expected) in table {
            assert_eq!(span(ms), expected);
        }
        assert_eq!(ago(5_000, 2_000), "0 ms ago", "a clock that is behind");
    }

    #[test]
    fn a_line_has_the_status() {
        let mut view = example();
        assert_eq!(status_line(&view, 0), "queued");
        (view.queue_position, view.estimated_wait_ms) = (Some(3), Some(12_345));
        assert_eq!(status_line(&view, 0), "queued, queue position 3, estimated wait 12 s");
        (view.queue_position, view.not_before_ms) = (Some(0), Some(4_000));
        assert_eq!(status_line(&view, 1_000), "queued, next in the queue, retry in 3.0 s");
        view.status = TaskStatus::Running;
        (view.executor, view.started_ms) = (Some("w1".into()), Some(1_000));
        view.cancel_requested = true;
        assert_eq!(status_line(&view, 63_000), "running on w1 for 1 min 2 s, cancel requested");
        (view.status, view.ran_ms) = (TaskStatus::Failed, Some(850));
        assert_eq!(status_line(&view, 0), "failed after 850 ms");
    }

    #[test]
    fn progress_has_a_bar_where_a_total_is_known() {
        let view = |json| serde_json::from_value::<ProgressView>(json).unwrap();
        let full = view(serde_json::json!({
            "counters": { "rows": 1200 }, "rates": { "rows": 24.04 }, "gauges": { "loss": 0.31 },
            "message": "epoch 3", "done": 3, "total": 10, "done_rate": 0.1, "updated_ms": 1,
        }));
        assert_eq!(
            progress_line(&full),
            "[###-------] 3/10 30 %, 1 min 10 s left, rows 1200 (24.0/s), loss 0.310, epoch 3"
        );
        let values = view(serde_json::json!({
            "histograms": {
                "empty": { "bounds": [1], "counts": [0, 0] },
                "ms": { "bounds": [1, 5, 25], "counts": [10, 50, 38, 2] },
                "one": { "bounds": [], "counts": [3] },
            },
            "updated_ms": 1,
        }));
        assert_eq!(
            progress_line(&values),
            "ms p50 ≤ 5.0, p99 > 25.0, one p50 unknown, p99 unknown"
        );
        let message = view(serde_json::json!({ "message": "a\u{1b}[2J", "updated_ms": 1 }));
        assert_eq!(progress_line(&message), "a\u{fffd}[2J");
        let over = view(serde_json::json!({ "done": 12, "total": 10, "updated_ms": 1 }));
        assert_eq!(progress_line(&over), "[##########] 12/10 100 %");
    }

    #[test]
    fn an_end_reason_has_its_name() {
        let mut view = example();
        assert_eq!(end_reason(&view), None);
        (view.reason, view.exit_code) = (Some(EndReason::Exit), Some(3));
        assert_eq!(end_reason(&view).unwrap(), "exit 3");
        (view.reason, view.exit_code) = (Some(EndReason::MemoryLimit), None);
        view.message = "more than 256 MiB".into();
        view.stopped = vec!["leftover_processes".into()];
        let expected = "memory_limit: more than 256 MiB (stopped: leftover_processes)";
        assert_eq!(end_reason(&view).unwrap(), expected);
    }
}
