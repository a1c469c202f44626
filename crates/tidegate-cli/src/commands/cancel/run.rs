use super::flags::CancelFlags;
use crate::admin_client::{self, AdminRequest};
use crate::failure::Failure;
use crate::task_client::{TaskClient, parse_id};
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate::task::TaskId;
use tidegate_server::tasks::manager::TaskView;

/// `tidegate cancel`: cancels each task; a failure does not affect the others.
pub fn run(flags: &CancelFlags) -> Result<ExitCode, Failure> {
    let ids: Vec<_> = flags.ids.iter().map(|id| parse_id(id)).collect::<Result<_, _>>()?;
    let client = TaskClient::new(&flags.admin);
    let runtime = admin_client::runtime()?;
    let mut failed = false;
    for id in &ids {
        match runtime.block_on(cancel(&client, id)) {
            Ok(view) => {
                // A closed standard output is no reason to stop.
                let _ = writeln!(io::stdout(), "{}", result(&view));
            }
            Err(failure) if ids.len() == 1 => return Err(failure),
            Err(failure) => {
                failed = true;
                let _ = writeln!(io::stderr(), "tidegate: {id}: {failure}");
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn cancel(client: &TaskClient, id: &TaskId) -> Result<TaskView, Failure> {
    let path = format!("/v1/tasks/{id}/cancel");
    client.decoded(&AdminRequest { method: "POST", path: &path, ..AdminRequest::default() }).await
}

fn result(view: &TaskView) -> String {
    let id = &view.id;
    match view.status.is_over() {
        true => format!("{id} is {}", view.status),
        false => format!("{id} is being cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task_client::format::example;
    use tidegate::task::TaskStatus;

    #[test]
    fn a_running_task_is_being_cancelled() {
        let view = TaskView { status: TaskStatus::Cancelled, ..example() };
        assert_eq!(result(&view), "a is cancelled");
        let view = TaskView { status: TaskStatus::Running, ..example() };
        assert_eq!(result(&view), "a is being cancelled");
    }
}
