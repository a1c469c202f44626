use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::task::TaskStatus;
use tidegate_server::manager::TaskView;

/// Now, in milliseconds of Unix time.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A span of time as people say it, in its two largest units.
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

/// How long ago a moment was; clocks of two machines may differ, and nothing was in the future.
pub fn ago(then_ms: u64, now_ms: u64) -> String {
    format!("{} ago", span(now_ms.saturating_sub(then_ms)))
}

/// What a task is doing, in a line.
pub fn standing(view: &TaskView, now_ms: u64) -> String {
    let mut text = view.status.to_string();
    match view.status {
        TaskStatus::Queued => text += &waiting(view, now_ms),
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
    if view.cancel_asked && !view.status.is_over() {
        text += ", asked to stop";
    }
    text
}

fn waiting(view: &TaskView, now_ms: u64) -> String {
    let mut text = String::new();
    match view.queue_position {
        Some(0) => text += ", next",
        Some(before) => text += &format!(", {before} before it"),
        None => {}
    }
    match (view.not_before_ms, view.estimated_wait_ms) {
        (Some(then), _) if then > now_ms => {
            text += &format!(", tried again in {}", span(then - now_ms));
        }
        (_, Some(wait_ms)) => text += &format!(", about {} to wait", span(wait_ms)),
        _ => {}
    }
    text
}

/// How a task that is over ended, or why it is tried again: the reason by its name and what is known of it.
pub fn ending(view: &TaskView) -> Option<String> {
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

/// A task for tests: it waits.
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
    fn a_line_says_where_a_task_stands() {
        let mut view = example();
        assert_eq!(standing(&view, 0), "queued");
        (view.queue_position, view.estimated_wait_ms) = (Some(3), Some(12_345));
        assert_eq!(standing(&view, 0), "queued, 3 before it, about 12 s to wait");
        (view.queue_position, view.not_before_ms) = (Some(0), Some(4_000));
        assert_eq!(standing(&view, 1_000), "queued, next, tried again in 3.0 s");
        view.status = TaskStatus::Running;
        (view.executor, view.started_ms) = (Some("w1".into()), Some(1_000));
        view.cancel_asked = true;
        assert_eq!(standing(&view, 63_000), "running on w1 for 1 min 2 s, asked to stop");
        (view.status, view.ran_ms) = (TaskStatus::Failed, Some(850));
        assert_eq!(standing(&view, 0), "failed after 850 ms");
    }

    #[test]
    fn an_ending_is_told_by_its_name() {
        let mut view = example();
        assert_eq!(ending(&view), None);
        (view.reason, view.exit_code) = (Some(EndReason::Exit), Some(3));
        assert_eq!(ending(&view).unwrap(), "exit 3");
        (view.reason, view.exit_code) = (Some(EndReason::MemoryLimit), None);
        view.message = "more than 256 MiB".into();
        view.stopped = vec!["leftover_processes".into()];
        let expected = "memory_limit: more than 256 MiB (stopped: leftover_processes)";
        assert_eq!(ending(&view).unwrap(), expected);
    }
}
