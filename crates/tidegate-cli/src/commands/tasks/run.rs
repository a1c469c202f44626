use super::flags::TasksFlags;
use crate::admin_client::{self, AdminRequest, percent_encoded};
use crate::failure::Failure;
use crate::task_client::format::{self, span};
use crate::task_client::{TaskClient, decode};
use crate::terminal::{aligned, print, printable};
use tidegate_server::tasks::manager::{TaskList, TaskView};

/// Characters of the last column.
const SHOWN_CHARS: usize = 60;

/// `tidegate tasks`.
pub fn run(flags: &TasksFlags) -> Result<(), Failure> {
    let client = TaskClient::new(&flags.admin);
    let response =
        admin_client::runtime()?.block_on(client.json(&AdminRequest::get(&path(flags))))?;
    let text = match flags.json {
        true => format!("{response:#}\n"),
        false => table(&decode(response)?, format::now_ms()),
    };
    print(&text);
    Ok(())
}

fn path(flags: &TasksFlags) -> String {
    let mut path = format!("/v1/tasks?limit={}", flags.limit);
    if let Some(status) = flags.status {
        path += &format!("&status={}", status.word());
    }
    if let Some(after) = &flags.after {
        path += &format!("&after={}", percent_encoded(after));
    }
    path
}

fn table(list: &TaskList, now_ms: u64) -> String {
    if list.tasks.is_empty() {
        return "no tasks\n".to_owned();
    }
    let titles = ["ID", "STATUS", "RUNTIME", "PRIORITY", "AGE", "ATTEMPT", "EXECUTOR", ""];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(list.tasks.iter().map(|view| row(view, now_ms)));
    let mut text = aligned(&lines, |column| column == 5);
    if let Some(next) = &list.next {
        text += &format!("more tasks: --after {}\n", printable(next));
    }
    text
}

fn row(view: &TaskView, now_ms: u64) -> Vec<String> {
    // The status is in its own column.
    let line = format::status_line(view, now_ms);
    let rest = line.strip_prefix(view.status.name()).unwrap_or(&line);
    let rest = rest.trim_start_matches([',', ' ']);
    let detail = match format::end_reason(view) {
        Some(why) if view.status.is_over() => format!("{rest}, {why}"),
        _ => rest.to_owned(),
    };
    let detail = printable(detail.trim_start_matches([',', ' ']));
    let shown: String = detail.chars().take(SHOWN_CHARS).collect();
    let cut = shown.len() < detail.len();
    vec![
        view.id.to_string(),
        view.status.to_string(),
        printable(&view.runtime),
        view.priority.to_string(),
        span(now_ms.saturating_sub(view.submitted_ms)),
        view.attempts().to_string(),
        view.executor.as_deref().map_or_else(|| "-".to_owned(), printable),
        if cut { format!("{shown}…") } else { shown },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin_client::AdminFlag;
    use crate::commands::tasks::flags::Status;
    use tidegate::task::{EndReason, TaskStatus};

    #[test]
    fn a_table_has_a_row_for_each_task() {
        let mut queued = format::example();
        (queued.queue_position, queued.estimated_wait_ms) = (Some(2), Some(30_000));
        let mut failed = format::example();
        (failed.status, failed.reason, failed.exit_code) =
            (TaskStatus::Failed, Some(EndReason::Exit), Some(3));
        (failed.attempt, failed.ran_ms, failed.executor) = (1, Some(850), Some("w1".into()));
        failed.message = "x".repeat(100);
        let list = TaskList { tasks: vec![queued, failed], next: Some("17".into()) };
        assert_eq!(
            table(&list, 66_000),
            format!(
                "ID  STATUS  RUNTIME  PRIORITY  AGE        ATTEMPT  EXECUTOR\n\
                 a   queued  sh       normal    1 min 5 s        0  -         \
                 queue position 2, estimated wait 30 s\n\
                 a   failed  sh       normal    1 min 5 s        1  w1        after 850 ms, exit 3: {}…\n\
                 more tasks: --after 17\n",
                "x".repeat(38)
            )
        );
        assert_eq!(table(&TaskList { tasks: Vec::new(), next: None }, 0), "no tasks\n");
    }

    #[test]
    fn a_query_has_the_flags() {
        let admin = AdminFlag::of("");
        let (status, after) = (Some(Status::Queued), Some("a b".to_owned()));
        let flags = TasksFlags { status, limit: 7, after, json: false, admin };
        assert_eq!(path(&flags), "/v1/tasks?limit=7&status=queued&after=a%20b");
    }
}
