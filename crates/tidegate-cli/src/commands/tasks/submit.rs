use super::client::{TaskClient, typed, understood};
use super::follow::{Reader, follow, verdict};
use super::progress::Progress;
use super::words;
use crate::admin::{self, Ask};
use crate::commands::signals::Signals;
use crate::failure::Failure;
use crate::task_flags::SubmitFlags;
use serde_json::{Map, Value, json};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tidegate_server::chance::Chance;
use tidegate_server::manager::TaskView;
use tokio::time::sleep;

/// How often a submission is sent whose answer did not come.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(300);

/// What Ctrl-C leaves with, by convention.
const INTERRUPTED: u8 = 130;

/// More than any node takes.
const CODE_BYTES_MAX: u64 = 1 << 30;

/// Shows what the task does, or keeps it for the end.
struct Waiting<'a> {
    progress: &'a Progress,
    /// What it wrote in its latest attempt, where that is wanted as JSON.
    kept: Option<Vec<OutputChunk>>,
    attempt: u32,
}

/// `tidegate submit`.
pub fn run(flags: &SubmitFlags) -> Result<ExitCode, Failure> {
    let runtime_name = runtime_of(flags)?;
    let body = body(flags, runtime_name, code(flags)?);
    admin::runtime()?.block_on(async {
        let client = TaskClient::new(&flags.admin);
        let told = submit(&client, flags, &body).await?;
        if flags.wait {
            return wait(&client, flags, typed(told)?).await;
        }
        let text = match flags.json {
            true => format!("{told:#}\n"),
            false => format!("{}\n", typed::<TaskView>(told)?.id),
        };
        // A reader that has seen enough is not a failure.
        let _ = io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    })
}

fn runtime_of(flags: &SubmitFlags) -> Result<&str, Failure> {
    if let Some(runtime) = &flags.runtime {
        return Ok(runtime);
    }
    let file = flags.file.as_deref().unwrap_or("-");
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("py") => Ok("python"),
        Some("sh") => Ok("sh"),
        _ => Err(Failure::Usage(
            "say what runs it, such as --runtime python: only .py and .sh are known by their names"
                .to_owned(),
        )),
    }
}

fn code(flags: &SubmitFlags) -> Result<String, Failure> {
    if let Some(code) = &flags.code {
        return Ok(code.clone());
    }
    let file = flags.file.as_deref().unwrap_or("-");
    let mut code = Vec::new();
    let read = match file {
        "-" => io::stdin().take(CODE_BYTES_MAX).read_to_end(&mut code),
        path => std::fs::File::open(path)
            .and_then(|file| file.take(CODE_BYTES_MAX).read_to_end(&mut code)),
    };
    let shown = if file == "-" { "standard input" } else { file };
    read.map_err(|error| Failure::Usage(format!("{shown} can't be read: {error}")))?;
    String::from_utf8(code).map_err(|_| Failure::Usage(format!("{shown} is no text in UTF-8")))
}

fn body(flags: &SubmitFlags, runtime: &str, code: String) -> Value {
    let mut body = Map::from_iter([
        ("runtime".to_owned(), json!(runtime)),
        ("code".to_owned(), Value::String(code)),
    ]);
    let mut put = |field: &str, value: Value| {
        if !value.is_null() {
            body.insert(field.to_owned(), value);
        }
    };
    put("id", json!(flags.id));
    put("priority", json!(flags.priority.map(crate::task_flags::Priority::word)));
    put("timeout_ms", json!(flags.timeout));
    put("retries", json!(flags.retries));
    if !flags.args.is_empty() {
        put("args", json!(flags.args));
    }
    if !flags.env.is_empty() {
        put("env", Value::Object(flags.env.iter().map(|(k, v)| (k.clone(), json!(v))).collect()));
    }
    Value::Object(body)
}

/// Sends it until an answer comes: with a key, or a name, it is done once however often it arrives.
async fn submit(client: &TaskClient, flags: &SubmitFlags, body: &Value) -> Result<Value, Failure> {
    let own = || {
        let chance = Chance::from_process();
        format!("cli-{:016x}{:016x}", chance.next(), chance.next())
    };
    let key = flags.key.clone().or_else(|| flags.id.is_none().then(own));
    let headers = key.as_deref().map(|key| ("idempotency-key", key)).into_iter().collect();
    let ask = Ask { method: "POST", path: "/v1/tasks", headers, body: Some(body) };
    for attempt in 1.. {
        match client.answer(&ask).await {
            // Nobody is there: that is no lost answer.
            Err(none) if attempt >= TRIES || (attempt == 1 && none.never_arrived) => {
                return Err(none.into());
            }
            Err(_lost) => sleep(PAUSE * attempt).await,
            Ok(answer) => return understood(&answer),
        }
    }
    Err(Failure::Runtime("no answer".to_owned()))
}

async fn wait(
    client: &TaskClient,
    flags: &SubmitFlags,
    view: TaskView,
) -> Result<ExitCode, Failure> {
    let progress = Progress::new(false);
    let kept = flags.json.then(Vec::new);
    let mut waiting = Waiting { progress: &progress, kept, attempt: 0 };
    let mut signals = Signals::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let over = tokio::select! {
        over = follow(client, &view.id, &mut waiting) => over,
        () = signals.next() => {
            progress.finish();
            let id = &view.id;
            progress.say(&format!(
                "the task {id} goes on: `tidegate logs {id} --follow` shows it, `tidegate cancel {id}` stops it"
            ));
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    progress.finish();
    let over = over?;
    if let Some(chunks) = waiting.kept {
        let _ = writeln!(io::stdout(), "{:#}", with_output(&over, &chunks));
    }
    if over.status != TaskStatus::Succeeded {
        progress.say(&verdict(&over));
    }
    Ok(ExitCode::from(exit_code(&over)))
}

fn with_output(view: &TaskView, chunks: &[OutputChunk]) -> Value {
    let mut told = json!(view);
    for (field, stream) in [("stdout", OutputStream::Stdout), ("stderr", OutputStream::Stderr)] {
        let texts = chunks.iter().filter(|chunk| chunk.stream == stream);
        told[field] = texts.map(|chunk| chunk.text.as_str()).collect::<String>().into();
    }
    told
}

/// The task's own where it has one that a shell does not use for itself.
fn exit_code(view: &TaskView) -> u8 {
    match (view.status, view.exit_code) {
        (TaskStatus::Succeeded, _) => 0,
        (TaskStatus::Failed, Some(code @ 1..=125)) => u8::try_from(code).unwrap_or(1),
        _ => 1,
    }
}

// === impl Waiting ===

impl Reader for Waiting<'_> {
    fn status(&mut self, view: &TaskView) {
        self.progress.show(view);
        if view.status == TaskStatus::Queued && view.attempt > self.attempt {
            // It ran, and waits again.
            self.attempt = view.attempt;
            let why = words::ending(view).unwrap_or_else(|| "its executor was lost".to_owned());
            self.progress.say(&format!("attempt {} did not succeed: {why}", view.attempt));
        }
    }

    fn output(&mut self, attempt: u32, chunk: &OutputChunk) {
        let Some(kept) = &mut self.kept else {
            return self.progress.write(chunk.stream, &chunk.text);
        };
        if attempt > self.attempt {
            kept.clear();
            self.attempt = attempt;
        }
        kept.push(chunk.clone());
    }

    fn trouble(&mut self, why: &str) {
        self.progress.say(&format!("{why}; trying again"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser as _;

    fn flags(line: &[&str]) -> SubmitFlags {
        match Cli::parse_from(["tidegate", "submit"].iter().chain(line)).command {
            Command::Submit(flags) => flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_runtime_is_known_by_the_files_name_or_must_be_said() {
        assert_eq!(runtime_of(&flags(&["a/b.py"])).unwrap(), "python");
        assert_eq!(runtime_of(&flags(&["x.tar.sh"])).unwrap(), "sh");
        assert_eq!(runtime_of(&flags(&["x.py", "--runtime", "pypy"])).unwrap(), "pypy");
        for line in [&["x.rb"][..], &["-"][..], &["py"][..], &["--code", "1"][..]] {
            let failure = runtime_of(&flags(line)).unwrap_err();
            assert!(matches!(&failure, Failure::Usage(text) if text.contains("--runtime python")));
        }
    }

    #[test]
    fn only_what_was_typed_is_sent() {
        let least = body(&flags(&["x.py"]), "python", "1".to_owned());
        assert_eq!(least, json!({ "runtime": "python", "code": "1" }));
        let most = flags(&[
            "x.py",
            "--id",
            "n",
            "--priority",
            "low",
            "--timeout",
            "2s",
            "--retries",
            "1",
            "--env",
            "A=b",
            "--",
            "-v",
        ]);
        assert_eq!(
            body(&most, "python", "1".to_owned()),
            json!({ "runtime": "python", "code": "1", "id": "n", "priority": "low", "args": ["-v"],
                    "timeout_ms": 2_000, "retries": 1, "env": { "A": "b" } })
        );
    }

    #[test]
    fn what_can_not_be_read_is_a_wrong_flag() {
        let failure = code(&flags(&["no/such/file.py"])).unwrap_err();
        assert!(matches!(&failure, Failure::Usage(text) if text.contains("no/such/file.py")));
    }

    #[test]
    fn the_exit_code_is_the_tasks_where_it_has_one() {
        let ended =
            |status, code| exit_code(&TaskView { status, exit_code: code, ..words::example() });
        assert_eq!(ended(TaskStatus::Succeeded, Some(0)), 0);
        assert_eq!(ended(TaskStatus::Failed, Some(3)), 3);
        assert_eq!(ended(TaskStatus::Failed, Some(125)), 125);
        assert_eq!(ended(TaskStatus::Failed, Some(126)), 1);
        assert_eq!(ended(TaskStatus::Failed, Some(-1)), 1);
        assert_eq!(ended(TaskStatus::Failed, None), 1);
        assert_eq!(ended(TaskStatus::Cancelled, Some(3)), 1);
    }

    #[test]
    fn as_json_it_has_what_its_latest_attempt_wrote() {
        let progress = Progress::new(true);
        let mut waiting = Waiting { progress: &progress, kept: Some(Vec::new()), attempt: 0 };
        let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
        waiting.output(1, &chunk(OutputStream::Stdout, "first"));
        waiting.output(2, &chunk(OutputStream::Stdout, "a"));
        waiting.output(2, &chunk(OutputStream::Stderr, "b"));
        waiting.output(2, &chunk(OutputStream::Stdout, "c"));
        let told = with_output(&words::example(), &waiting.kept.unwrap());
        assert_eq!(
            (&told["stdout"], &told["stderr"], &told["id"]),
            (&json!("ac"), &json!("b"), &json!("a"))
        );
    }
}
