use super::flags::LogsFlags;
use crate::admin_client::{self, AdminRequest};
use crate::failure::Failure;
use crate::task_client::{Progress, TaskClient, TaskObserver, decode, follow, parse_id, verdict};
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tidegate_server::tasks::manager::{ProgressView, TaskView};

/// Writes the selected output of a task.
struct Writer<'a> {
    progress: &'a Progress,
    /// Only this stream; `None` for both.
    only: Option<OutputStream>,
}

/// `tidegate logs`.
pub fn run(flags: &LogsFlags) -> Result<(), Failure> {
    let id = parse_id(&flags.id)?;
    let client = TaskClient::new(&flags.admin);
    // No spinner: it would mix with the output.
    let progress = Progress::new(true);
    let mut writer = Writer { progress: &progress, only: only(flags) };
    admin_client::runtime()?.block_on(async {
        if flags.follow {
            let over = follow(&client, &id, &mut writer).await?;
            if over.status != TaskStatus::Succeeded {
                progress.say(&verdict(&over));
            }
            return Ok(());
        }
        let path = format!("/v1/tasks/{id}/output");
        let mut output = client.json(&AdminRequest::get(&path)).await?;
        for chunk in &decode::<Vec<OutputChunk>>(output["chunks"].take())? {
            writer.output(0, chunk);
        }
        Ok(())
    })
}

fn only(flags: &LogsFlags) -> Option<OutputStream> {
    match (flags.stdout, flags.stderr) {
        (true, _) => Some(OutputStream::Stdout),
        (_, true) => Some(OutputStream::Stderr),
        _ => None,
    }
}

// === impl Writer ===

impl TaskObserver for Writer<'_> {
    fn status(&mut self, _: &TaskView) {}

    fn output(&mut self, _: u32, chunk: &OutputChunk) {
        match self.only {
            // A single selected stream goes to standard output.
            Some(only) if only == chunk.stream => {
                self.progress.write(OutputStream::Stdout, &chunk.text);
            }
            Some(_) => {}
            None => self.progress.write(chunk.stream, &chunk.text),
        }
    }

    fn progress(&mut self, _: &ProgressView) {}

    fn connection_lost(&mut self, why: &str) {
        self.progress.say(&format!("{why}; retrying"));
    }
}
