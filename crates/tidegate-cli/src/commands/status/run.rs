use super::flags::StatusFlags;
use crate::admin_client::{self, AdminRequest};
use crate::failure::Failure;
use crate::task_client::format::{self, ago, span};
use crate::task_client::{TaskClient, TaskObserver, decode, follow, parse_id};
use crate::terminal::{aligned, print, printable};
use jiff::Timestamp;
use tidegate::task::{OutputChunk, TaskStatus};
use tidegate_server::tasks::manager::{ExecutorList, ExecutorView, ProgressView, TaskView};

/// `tidegate status`.
pub fn run(flags: &StatusFlags) -> Result<(), Failure> {
    let path = match &flags.id {
        Some(id) => format!("/v1/tasks/{}", parse_id(id)?),
        None => "/v1/executors".to_owned(),
    };
    let client = TaskClient::new(&flags.admin);
    if let (true, Some(id)) = (flags.follow, &flags.id) {
        let id = parse_id(id)?;
        let mut lines = Lines::default();
        let over = admin_client::runtime()?.block_on(follow(&client, &id, &mut lines))?;
        print(&details(&over, format::now_ms()));
        return Ok(());
    }
    let response = admin_client::runtime()?.block_on(client.json(&AdminRequest::get(&path)))?;
    let text = match (flags.json, &flags.id) {
        (true, _) => format!("{response:#}\n"),
        (false, Some(_)) => details(&decode(response)?, format::now_ms()),
        (false, None) => overview(&decode(response)?),
    };
    print(&text);
    Ok(())
}

/// Prints a line for each change of a task.
#[derive(Default)]
struct Lines {
    last: String,
}

impl Lines {
    fn print(&mut self, line: String) {
        if line != self.last {
            print(&format!("{line}\n"));
            self.last = line;
        }
    }
}

impl TaskObserver for Lines {
    fn status(&mut self, view: &TaskView) {
        self.print(printable(&format::status_line(view, format::now_ms())));
    }

    fn output(&mut self, _: u32, _: &OutputChunk) {}

    fn progress(&mut self, progress: &ProgressView) {
        self.print(format::progress_line(progress));
    }

    fn connection_lost(&mut self, why: &str) {
        eprintln!("tidegate: {why}; retrying");
    }
}

fn details(view: &TaskView, now_ms: u64) -> String {
    let at = |ms: u64| format!("{}, {}", moment(ms), ago(ms, now_ms));
    let some = |text: String| (!text.is_empty()).then_some(text);
    let attempts = match (view.attempts(), view.failures, view.losses) {
        (0, ..) => "none yet".to_owned(),
        (all, failed, 0) => format!("{all}, {failed} failed"),
        (all, failed, lost) => format!("{all}, {failed} failed, {lost} lost with their executor"),
    };
    let why = if view.status.is_over() { "ended" } else { "last attempt" };
    let rows = [
        ("task", Some(view.id.to_string())),
        ("status", Some(format::status_line(view, now_ms))),
        (why, format::end_reason(view)),
        ("runtime", Some(view.runtime.clone())),
        ("arguments", some(view.args.join(" "))),
        ("environment", some(view.env.join(" "))),
        ("priority", Some(view.priority.to_string())),
        ("timeout", Some(span(view.timeout_ms))),
        ("retries", Some(view.retries.to_string())),
        ("attempts", Some(attempts)),
        ("executor", view.executor.clone()),
        ("progress", view.progress.as_ref().map(format::progress_line)),
        ("submitted", Some(at(view.submitted_ms))),
        ("queued for", view.queue_age_ms.map(span)),
        ("started", view.started_ms.map(at)),
        ("ended at", view.ended_ms.map(at)),
        ("output", view.output_cut.then(|| "truncated at the limit".to_owned())),
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
        return format!("tasks: {counts}\nno executors: tasks stay queued until one is up\n");
    }
    let titles = ["EXECUTOR", "UP", "RUNNING", "RESERVED", "SLOTS", "KIND", "RUNTIMES", "URL"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(list.executors.iter().map(executor));
    let up: Vec<_> = list.executors.iter().filter(|executor| executor.up).collect();
    let slots: u32 = up.iter().map(|executor| executor.max_concurrent).sum();
    let taken: u32 = up.iter().map(|executor| executor.running + executor.reserved).sum();
    let table = aligned(&lines, |column| (2..=4).contains(&column));
    let open: Vec<_> = up.iter().filter_map(|executor| inactive_layers(executor)).collect();
    format!("tasks: {counts}\nslots: {taken} of {slots} in use\n\n{table}{}", open.concat())
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

/// Warning about sandbox layers that are not active.
fn inactive_layers(view: &ExecutorView) -> Option<String> {
    let off = view.sandbox.iter().filter(|layer| !layer.active);
    let off: Vec<_> = off.map(|layer| format!("{} ({})", layer.layer, layer.detail)).collect();
    let line = format!("{}: not active: {}", view.name, off.join(", "));
    (!off.is_empty()).then(|| format!("{}\n", printable(&line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidegate::task::EndReason;

    #[test]
    fn details_omit_what_is_unknown() {
        let mut view = format::example();
        (view.queue_position, view.queue_age_ms) = (Some(2), Some(5_000));
        view.estimated_wait_ms = Some(30_000);
        assert_eq!(
            details(&view, 6_000),
            "task        a\n\
             status      queued, queue position 2, estimated wait 30 s\n\
             runtime     sh\n\
             priority    normal\n\
             timeout     1 min\n\
             retries     2\n\
             attempts    none yet\n\
             submitted   1970-01-01 00:00:01 UTC, 5.0 s ago\n\
             queued for  5.0 s\n"
        );
    }

    #[test]
    fn a_failed_task_has_its_reason_without_control_characters() {
        let mut view = format::example();
        (view.status, view.reason) = (TaskStatus::Failed, Some(EndReason::Timeout));
        (view.attempt, view.failures, view.losses) = (3, 2, 1);
        view.message = "ran for longer than \u{1b}[2J1 min".into();
        (view.ended_ms, view.ran_ms) = (Some(61_000), Some(60_000));
        let text = details(&view, 61_000);
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
             slots: 3 of 4 in use\n\n\
             EXECUTOR  UP   RUNNING  RESERVED  SLOTS  KIND     RUNTIMES    URL\n\
             w1        yes        2         1      4  process  python, sh  http://127.0.0.1:8083\n\
             w2        no         0         0      4  -        -           http://127.0.0.1:8084\n\
             w1: not active: landlock (old kernel)\n"
        );
        assert!(overview(&ExecutorList::default()).contains("no executors"));
    }
}
