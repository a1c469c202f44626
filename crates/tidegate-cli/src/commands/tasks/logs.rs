use super::client::{TaskClient, named, typed};
use super::follow::{Reader, follow, verdict};
use super::progress::Progress;
use crate::admin::{self, Ask};
use crate::failure::Failure;
use crate::task_flags::LogsFlags;
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tidegate_server::manager::TaskView;

/// Writes what of a task's output is wanted.
struct Writer<'a> {
    progress: &'a Progress,
    /// Only this stream; `None` for both.
    only: Option<OutputStream>,
}

/// `tidegate logs`.
pub fn run(flags: &LogsFlags) -> Result<(), Failure> {
    let id = named(&flags.id)?;
    let client = TaskClient::new(&flags.admin);
    // No spinner: whoever reads logs wants nothing between them.
    let progress = Progress::new(true);
    let mut writer = Writer { progress: &progress, only: only(flags) };
    admin::runtime()?.block_on(async {
        if flags.follow {
            let over = follow(&client, &id, &mut writer).await?;
            if over.status != TaskStatus::Succeeded {
                progress.say(&verdict(&over));
            }
            return Ok(());
        }
        let path = format!("/v1/tasks/{id}/output");
        let mut told = client.json(&Ask::get(&path)).await?;
        for chunk in &typed::<Vec<OutputChunk>>(told["chunks"].take())? {
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

impl Reader for Writer<'_> {
    fn status(&mut self, _: &TaskView) {}

    fn output(&mut self, _: u32, chunk: &OutputChunk) {
        match self.only {
            // What alone is asked for is what the reader of standard output wants.
            Some(only) if only == chunk.stream => {
                self.progress.write(OutputStream::Stdout, &chunk.text);
            }
            Some(_) => {}
            None => self.progress.write(chunk.stream, &chunk.text),
        }
    }

    fn trouble(&mut self, why: &str) {
        self.progress.say(&format!("{why}; trying again"));
    }
}
