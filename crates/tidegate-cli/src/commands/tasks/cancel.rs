use super::client::{TaskClient, named};
use crate::admin::{self, Ask};
use crate::failure::Failure;
use crate::task_flags::CancelFlags;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate::task::TaskId;
use tidegate_server::manager::TaskView;

/// `tidegate cancel`. Each is told of; one that can't be cancelled does not keep the others.
pub fn run(flags: &CancelFlags) -> Result<ExitCode, Failure> {
    let ids: Vec<_> = flags.ids.iter().map(|id| named(id)).collect::<Result<_, _>>()?;
    let client = TaskClient::new(&flags.admin);
    let runtime = admin::runtime()?;
    let mut failed = false;
    for id in &ids {
        match runtime.block_on(cancel(&client, id)) {
            Ok(view) => {
                // Whoever closed our output did not ask us to stop.
                let _ = writeln!(io::stdout(), "{}", told(&view));
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
    client.typed(&Ask { method: "POST", path: &path, ..Ask::default() }).await
}

fn told(view: &TaskView) -> String {
    let id = &view.id;
    match view.status.is_over() {
        true => format!("{id} is {}", view.status),
        false => format!("{id} is told to stop"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tasks::words::example;
    use tidegate::task::TaskStatus;

    #[test]
    fn it_says_whether_it_is_over() {
        let view = TaskView { status: TaskStatus::Cancelled, ..example() };
        assert_eq!(told(&view), "a is cancelled");
        let view = TaskView { status: TaskStatus::Running, ..example() };
        assert_eq!(told(&view), "a is told to stop");
    }
}
