use super::flags::{Priority, SubmitFlags};
use crate::admin_client::{self, AdminRequest};
use crate::exit_code;
use crate::failure::Failure;
use crate::shutdown::Signals;
use crate::task_client::{
    Progress, TaskClient, TaskObserver, decode, follow, format, response_json, verdict,
};
use crate::terminal::print;
use serde_json::{Map, Value, json};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tidegate::rng::Rng;
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tidegate_server::tasks::manager::{ProgressView, TaskView};
use tokio::time::sleep;

/// Attempts to send a submission without a response.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(300);

/// Limit of the code; nodes accept less.
const CODE_BYTES_MAX: u64 = 1 << 30;

/// Observer that prints output, or collects it for JSON.
struct Waiter<'a> {
    progress: &'a Progress,
    /// Output of the latest attempt, for JSON.
    collected: Option<Vec<OutputChunk>>,
    attempt: u32,
    /// Attempts that failed or were lost.
    ended: u32,
}

/// `tidegate submit`.
pub fn run(flags: &SubmitFlags) -> Result<ExitCode, Failure> {
    let runtime_name = runtime_of(flags)?;
    let body = body(flags, runtime_name, code(flags)?);
    admin_client::runtime()?.block_on(async {
        let client = TaskClient::new(&flags.admin);
        let response = submit(&client, flags, &body).await?;
        if flags.wait {
            return wait(&client, flags, decode(response)?).await;
        }
        let text = match flags.json {
            true => format!("{response:#}\n"),
            false => format!("{}\n", decode::<TaskView>(response)?.id),
        };
        print(&text);
        Ok(ExitCode::SUCCESS)
    })
}

fn runtime_of(flags: &SubmitFlags) -> Result<&str, Failure> {
    if let Some(runtime) = &flags.runtime {
        return Ok(runtime);
    }
    let file = flags.file.as_deref().unwrap_or("-");
    if Path::new(file).is_dir() {
        return Err(Failure::Usage(format!("{file} is a folder: submit one file of code")));
    }
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("py") => Ok("python"),
        Some("sh") => Ok("sh"),
        _ => Err(Failure::Usage(
            "unknown runtime: use --runtime, such as --runtime python; only .py and .sh files imply one"
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
    read.map_err(|error| Failure::Usage(format!("can't read {shown}: {error}")))?;
    String::from_utf8(code).map_err(|_| Failure::Usage(format!("{shown} is not UTF-8 text")))
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
    put("priority", json!(flags.priority.map(Priority::word)));
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

/// Sends the submission until a response arrives. With a key or an id it counts once.
async fn submit(client: &TaskClient, flags: &SubmitFlags, body: &Value) -> Result<Value, Failure> {
    let random_key = || {
        let rng = Rng::from_process();
        format!("cli-{:016x}{:016x}", rng.next_u64(), rng.next_u64())
    };
    let key = flags.key.clone().or_else(|| flags.id.is_none().then(random_key));
    let headers = key.as_deref().map(|key| ("idempotency-key", key)).into_iter().collect();
    let request = AdminRequest { method: "POST", path: "/v1/tasks", headers, body: Some(body) };
    for attempt in 1.. {
        match client.send(&request).await {
            // No connection: the submission did not arrive.
            Err(error) if attempt >= TRIES || (attempt == 1 && error.not_connected) => {
                return Err(error.into());
            }
            Err(_lost) => sleep(PAUSE * attempt).await,
            Ok(response) => return response_json(&response),
        }
    }
    Err(Failure::Runtime("no response".to_owned()))
}

async fn wait(
    client: &TaskClient,
    flags: &SubmitFlags,
    view: TaskView,
) -> Result<ExitCode, Failure> {
    let progress = Progress::new(false);
    let collected = flags.json.then(Vec::new);
    let mut waiter = Waiter { progress: &progress, collected, attempt: 0, ended: 0 };
    let mut signals = Signals::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let over = tokio::select! {
        over = follow(client, &view.id, &mut waiter) => over,
        () = signals.next() => {
            progress.finish();
            let (id, node) = (&view.id, client.advice());
            progress.say(&format!(
                "task {id} continues: `tidegate logs{node} {id} --follow` shows its output, \
                 `tidegate cancel{node} {id}` stops it"
            ));
            return Ok(ExitCode::from(exit_code::INTERRUPTED));
        }
    };
    progress.finish();
    let over = over?;
    if let Some(chunks) = waiter.collected {
        let _ = writeln!(io::stdout(), "{:#}", with_output(&over, &chunks));
    }
    if over.status != TaskStatus::Succeeded {
        progress.say(&verdict(&over));
    }
    Ok(ExitCode::from(task_exit_code(&over)))
}

fn with_output(view: &TaskView, chunks: &[OutputChunk]) -> Value {
    let mut report = json!(view);
    for (field, stream) in [("stdout", OutputStream::Stdout), ("stderr", OutputStream::Stderr)] {
        let texts = chunks.iter().filter(|chunk| chunk.stream == stream);
        report[field] = texts.map(|chunk| chunk.text.as_str()).collect::<String>().into();
    }
    report
}

/// Exit code of the task if shells do not reserve it, else 1.
fn task_exit_code(view: &TaskView) -> u8 {
    match (view.status, view.exit_code) {
        (TaskStatus::Succeeded, _) => 0,
        (TaskStatus::Failed, Some(code @ 1..=125)) => u8::try_from(code).unwrap_or(1),
        _ => 1,
    }
}

// === impl Waiter ===

impl TaskObserver for Waiter<'_> {
    fn status(&mut self, view: &TaskView) {
        self.progress.show(view);
        let ended = view.failures + view.losses;
        if view.status == TaskStatus::Queued && ended > self.ended {
            // The task is queued again after an attempt.
            (self.attempt, self.ended) = (view.attempt, ended);
            let why =
                format::end_reason(view).unwrap_or_else(|| "its executor was lost".to_owned());
            self.progress.say(&format!("attempt {} failed: {why}", view.attempts()));
        }
    }

    fn output(&mut self, attempt: u32, chunk: &OutputChunk) {
        let Some(collected) = &mut self.collected else {
            return self.progress.write(chunk.stream, &chunk.text);
        };
        if attempt > self.attempt {
            collected.clear();
            self.attempt = attempt;
        }
        collected.push(chunk.clone());
    }

    fn progress(&mut self, progress: &ProgressView) {
        self.progress.show_progress(progress);
    }

    fn connection_lost(&mut self, why: &str) {
        self.progress.say(&format!("{why}; retrying"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser as _;

    fn flags(line: &[&str]) -> SubmitFlags {
        match Cli::parse_from(["tidegate", "submit"].iter().chain(line)).command {
            Command::Submit(flags) => flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_runtime_follows_from_the_file_name_or_the_flag() {
        assert_eq!(runtime_of(&flags(&["a/b.py"])).unwrap(), "python");
        assert_eq!(runtime_of(&flags(&["x.tar.sh"])).unwrap(), "sh");
        assert_eq!(runtime_of(&flags(&["x.py", "--runtime", "pypy"])).unwrap(), "pypy");
        for line in [&["x.rb"][..], &["-"][..], &["py"][..], &["--code", "1"][..]] {
            let failure = runtime_of(&flags(line)).unwrap_err();
            assert!(matches!(&failure, Failure::Usage(text) if text.contains("--runtime python")));
        }
    }

    #[test]
    fn only_given_flags_are_sent() {
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
    fn an_unreadable_file_is_a_usage_error() {
        let failure = code(&flags(&["no/such/file.py"])).unwrap_err();
        assert!(matches!(&failure, Failure::Usage(text) if text.contains("no/such/file.py")));
    }

    #[test]
    fn the_exit_code_is_that_of_the_task() {
        let ended = |status, code| {
            task_exit_code(&TaskView { status, exit_code: code, ..format::example() })
        };
        assert_eq!(ended(TaskStatus::Succeeded, Some(0)), 0);
        assert_eq!(ended(TaskStatus::Failed, Some(3)), 3);
        assert_eq!(ended(TaskStatus::Failed, Some(125)), 125);
        assert_eq!(ended(TaskStatus::Failed, Some(126)), 1);
        assert_eq!(ended(TaskStatus::Failed, Some(-1)), 1);
        assert_eq!(ended(TaskStatus::Failed, None), 1);
        assert_eq!(ended(TaskStatus::Cancelled, Some(3)), 1);
    }

    #[test]
    fn json_has_the_output_of_the_latest_attempt() {
        let progress = Progress::new(true);
        let mut waiter =
            Waiter { progress: &progress, collected: Some(Vec::new()), attempt: 0, ended: 0 };
        let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
        waiter.output(1, &chunk(OutputStream::Stdout, "first"));
        waiter.output(2, &chunk(OutputStream::Stdout, "a"));
        waiter.output(2, &chunk(OutputStream::Stderr, "b"));
        waiter.output(2, &chunk(OutputStream::Stdout, "c"));
        let report = with_output(&format::example(), &waiter.collected.unwrap());
        assert_eq!(
            (&report["stdout"], &report["stderr"], &report["id"]),
            (&json!("ac"), &json!("b"), &json!("a"))
        );
    }
}
