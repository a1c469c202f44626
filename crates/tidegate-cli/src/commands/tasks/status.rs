use super::client::{TaskClient, named, typed};
use super::words::{self, ago, span};
use crate::admin::{self, Ask};
use crate::commands::table::{aligned, printable};
use crate::failure::Failure;
use crate::task_flags::StatusFlags;
use jiff::Timestamp;
use std::io::{self, Write as _};
use tidegate::task::TaskStatus;
use tidegate_server::manager::{ExecutorList, ExecutorView, TaskView};

/// `tidegate status`.
pub fn run(flags: &StatusFlags) -> Result<(), Failure> {
    let path = match &flags.id {
        Some(id) => format!("/v1/tasks/{}", named(id)?),
        None => "/v1/executors".to_owned(),
    };
    let client = TaskClient::new(&flags.admin);
    let told = admin::runtime()?.block_on(client.json(&Ask::get(&path)))?;
    let text = match (flags.json, &flags.id) {
        (true, _) => format!("{told:#}\n"),
        (false, Some(_)) => everything(&typed(told)?, words::now_ms()),
        (false, None) => overview(&typed(told)?),
    };
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

fn everything(view: &TaskView, now_ms: u64) -> String {
    let at = |ms: u64| format!("{}, {}", moment(ms), ago(ms, now_ms));
    let some = |text: String| (!text.is_empty()).then_some(text);
    let attempts = match (view.attempt, view.failures, view.losses) {
        (0, ..) => "none yet".to_owned(),
        (all, failed, 0) => format!("{all}, {failed} failed"),
        (all, failed, lost) => format!("{all}, {failed} failed, {lost} lost with their executor"),
    };
    let env = view.env.iter().map(|(name, value)| format!("{name}={value}"));
    let why = if view.status.is_over() { "ended" } else { "last attempt" };
    let rows = [
        ("task", Some(view.id.to_string())),
        ("status", Some(words::standing(view, now_ms))),
        (why, words::ending(view)),
        ("runtime", Some(view.runtime.clone())),
        ("arguments", some(view.args.join(" "))),
        ("environment", some(env.collect::<Vec<_>>().join(" "))),
        ("priority", Some(view.priority.to_string())),
        ("timeout", Some(span(view.timeout_ms))),
        ("retries", Some(view.retries.to_string())),
        ("attempts", Some(attempts)),
        ("executor", view.executor.clone()),
        ("submitted", Some(at(view.submitted_ms))),
        ("in line for", view.queue_age_ms.map(span)),
        ("started", view.started_ms.map(at)),
        ("ended at", view.ended_ms.map(at)),
        ("output", view.output_cut.then(|| "was cut at the limit".to_owned())),
    ];
    let shown = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let lines: Vec<_> =
        shown.map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect();
    aligned(&lines, |_| false)
}

fn moment(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| ms.to_string(), |time| time.strftime("%F %T UTC").to_string())
}

fn overview(list: &ExecutorList) -> String {
    let count = |status: TaskStatus| list.tasks.get(&status).copied().unwrap_or(0);
    let counts = TaskStatus::ALL.map(|status| format!("{} {status}", count(status))).join(", ");
    if list.executors.is_empty() {
        return format!("tasks: {counts}\nno executors: tasks wait until there is one\n");
    }
    let titles = ["EXECUTOR", "UP", "RUNNING", "RESERVED", "SLOTS", "KIND", "RUNTIMES", "URL"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(list.executors.iter().map(executor));
    let up: Vec<_> = list.executors.iter().filter(|executor| executor.up).collect();
    let slots: u32 = up.iter().map(|executor| executor.max_concurrent).sum();
    let taken: u32 = up.iter().map(|executor| executor.running + executor.reserved).sum();
    let table = aligned(&lines, |column| (2..=4).contains(&column));
    let open: Vec<_> = up.iter().filter_map(|executor| unguarded(executor)).collect();
    format!("tasks: {counts}\nslots: {taken} of {slots} taken\n\n{table}{}", open.concat())
}

fn executor(view: &ExecutorView) -> Vec<String> {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { printable(text) };
    vec![
        printable(&view.name),
        if view.up { "yes" } else { "no" }.to_owned(),
        view.running.to_string(),
        view.reserved.to_string(),
        view.max_concurrent.to_string(),
        or_dash(&view.kind),
        or_dash(&view.runtimes.join(", ")),
        printable(&view.url),
    ]
}

/// What of its sandbox is not in force, for who runs what others have written.
fn unguarded(view: &ExecutorView) -> Option<String> {
    let off = view.sandbox.iter().filter(|layer| !layer.active);
    let off: Vec<_> = off.map(|layer| format!("{} ({})", layer.layer, layer.detail)).collect();
    let line = format!("{}: not in force: {}", view.name, off.join(", "));
    (!off.is_empty()).then(|| format!("{}\n", printable(&line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate::task::EndReason;

    #[test]
    fn everything_about_a_task_is_told_and_nothing_that_is_not_known() {
        let mut view = words::example();
        (view.queue_position, view.queue_age_ms) = (Some(2), Some(5_000));
        view.estimated_wait_ms = Some(30_000);
        assert_eq!(
            everything(&view, 6_000),
            "task         a\n\
             status       queued, 2 before it, about 30 s to wait\n\
             runtime      sh\n\
             priority     normal\n\
             timeout      1 min\n\
             retries      2\n\
             attempts     none yet\n\
             submitted    1970-01-01 00:00:01 UTC, 5.0 s ago\n\
             in line for  5.0 s\n"
        );
    }

    #[test]
    fn a_failed_task_says_why_and_can_not_move_the_cursor() {
        let mut view = words::example();
        (view.status, view.reason) = (TaskStatus::Failed, Some(EndReason::Timeout));
        (view.attempt, view.failures, view.losses) = (3, 2, 1);
        view.message = "ran for longer than \u{1b}[2J1 min".into();
        (view.ended_ms, view.ran_ms) = (Some(61_000), Some(60_000));
        let text = everything(&view, 61_000);
        assert!(text.contains("failed after 1 min\n"), "{text}");
        assert!(text.contains("timeout: ran for longer than \u{fffd}[2J1 min\n"), "{text}");
        assert!(text.contains("3, 2 failed, 1 lost with their executor\n"), "{text}");
    }

    #[test]
    fn an_overview_counts_tasks_and_slots() {
        let list: ExecutorList = serde_json::from_value(json!({
            "tasks": { "queued": 3, "running": 2 },
            "executors": [
                { "name": "w1", "url": "http://127.0.0.1:8083", "up": true, "running": 2, "reserved": 1,
                  "max_concurrent": 4, "runtimes": ["python", "sh"], "kind": "process",
                  "sandbox": [{ "layer": "rlimits", "active": true, "detail": "" },
                              { "layer": "landlock", "active": false, "detail": "old kernel" }] },
                { "name": "w2", "url": "http://127.0.0.1:8084", "up": false, "running": 0,
                  "reserved": 0, "max_concurrent": 4 },
            ],
        }))
        .unwrap();
        assert_eq!(
            overview(&list),
            "tasks: 3 queued, 0 provisioning, 2 running, 0 succeeded, 0 failed, 0 cancelled\n\
             slots: 3 of 4 taken\n\n\
             EXECUTOR  UP   RUNNING  RESERVED  SLOTS  KIND     RUNTIMES    URL\n\
             w1        yes        2         1      4  process  python, sh  http://127.0.0.1:8083\n\
             w2        no         0         0      4  -        -           http://127.0.0.1:8084\n\
             w1: not in force: landlock (old kernel)\n"
        );
        assert!(overview(&ExecutorList::default()).contains("no executors"));
    }
}
