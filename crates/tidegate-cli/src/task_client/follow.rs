use super::client::{Events, EventsError, TaskClient, decode};
use super::format;
use super::sse::{Event, SseParser};
use crate::failure::Failure;
use serde_json::Value;
use std::time::Duration;
use tidegate::task::{OutputChunk, TaskId, TaskStatus};
use tidegate_server::tasks::manager::{ProgressView, TaskView};
use tokio::time::{Instant, sleep};

/// Failed connections in a row before giving up. With the pauses this is 30 s, enough for a restart of the node.
const FAILURES_MAX: u32 = 10;
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Receiver of a task's events.
pub trait TaskObserver {
    /// The status changed.
    fn status(&mut self, view: &TaskView);
    /// The task wrote output.
    fn output(&mut self, attempt: u32, chunk: &OutputChunk);
    /// The task made progress.
    fn progress(&mut self, progress: &ProgressView);
    /// The connection was lost; it is retried.
    fn connection_lost(&mut self, why: &str);
}

/// State of following a task over several connections.
struct Follower<'a, R> {
    observer: &'a mut R,
    parser: SseParser,
    /// Last status.
    status: Option<TaskStatus>,
    /// Failed connections in a row.
    failures: u32,
}

/// Follows a task to its end; returns its last state.
///
/// # Errors
///
/// When the task is unknown, or the node is unreachable for too long. The task continues.
///
/// # Cancel safety
///
/// Cancel safe: the task continues.
pub async fn follow(
    client: &TaskClient,
    id: &TaskId,
    observer: &mut impl TaskObserver,
) -> Result<TaskView, Failure> {
    let parser = SseParser::default();
    let mut follower = Follower { observer, parser, status: None, failures: 0 };
    loop {
        let failure = match client.events(id, &mut follower.parser).await {
            Ok(events) => match follower.read(events).await? {
                Some(over) => return Ok(over),
                None => Failure::Runtime("the connection ended".to_owned()),
            },
            Err(EventsError::Temporary(failure)) => failure,
            Err(EventsError::Permanent(failure)) => return Err(failure),
        };
        if follower.failures >= FAILURES_MAX {
            let node = client.advice();
            return Err(Failure::Runtime(format!(
                "can't follow task {id}, which continues: {failure}; resume with \
                 `tidegate logs{node} {id} --follow`"
            )));
        }
        if follower.failures == 1 {
            // A single failure is not reported: a proxy may have closed an idle connection.
            follower.observer.connection_lost(&failure.to_string());
        }
        sleep(pause(follower.failures)).await;
        follower.failures += 1;
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << failures.min(16)).min(PAUSE_MAX)
}

// === impl Follower ===

impl<R: TaskObserver> Follower<'_, R> {
    /// Reads one connection to its end; `None` when the task is not over by then.
    async fn read(&mut self, mut events: Events) -> Result<Option<TaskView>, Failure> {
        let since = Instant::now();
        while let Some(event) = events.next(&mut self.parser).await? {
            if let Some(over) = self.take(&event)? {
                return Ok(Some(over));
            }
        }
        // A connection that lasted resets the count, even without events.
        if since.elapsed() > PAUSE_MAX {
            self.failures = 0;
        }
        Ok(None)
    }

    fn take(&mut self, event: &Event) -> Result<Option<TaskView>, Failure> {
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|error| Failure::Runtime(format!("unexpected event: {error}")))?;
        match &*event.name {
            "status" => {
                let view: TaskView = decode(data)?;
                if self.status.replace(view.status) != Some(view.status) {
                    self.failures = 0;
                }
                self.observer.status(&view);
                return Ok(view.status.is_over().then_some(view));
            }
            "output" => {
                self.failures = 0;
                let attempt = data["attempt"].as_u64().and_then(|n| u32::try_from(n).ok());
                self.observer.output(attempt.unwrap_or(0), &decode::<OutputChunk>(data)?);
            }
            "progress" => {
                self.failures = 0;
                self.observer.progress(&decode::<ProgressView>(data)?);
            }
            // Other events are ignored.
            _ => {}
        }
        Ok(None)
    }
}

/// Message about a task that ended without success.
pub fn verdict(view: &TaskView) -> String {
    let id = &view.id;
    let status = match view.status {
        TaskStatus::Cancelled => "was cancelled",
        other => other.name(),
    };
    let tries = match view.attempts() {
        0 | 1 => String::new(),
        attempts => format!(" in {attempts} attempts"),
    };
    match format::end_reason(view) {
        Some(why) => format!("task {id} {status}{tries}: {why}"),
        None => format!("task {id} {status}{tries}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin_client::AdminFlag;
    use tidegate::task::{EndReason, OutputStream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[derive(Default)]
    struct Observed {
        text: String,
        statuses: Vec<TaskStatus>,
        failures: usize,
    }

    impl TaskObserver for Observed {
        fn status(&mut self, view: &TaskView) {
            self.statuses.push(view.status);
        }

        fn output(&mut self, attempt: u32, chunk: &OutputChunk) {
            assert_eq!((attempt, chunk.stream), (1, OutputStream::Stdout));
            self.text += &chunk.text;
        }

        fn progress(&mut self, _: &ProgressView) {}

        fn connection_lost(&mut self, _: &str) {
            self.failures += 1;
        }
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    fn status(status: TaskStatus) -> String {
        let view = TaskView { status, ..format::example() };
        let view = serde_json::to_string(&view).unwrap();
        format!("event: status\nid: 1.4.0\ndata: {view}\n\n")
    }

    fn output(id: &str, text: &str) -> String {
        let data = serde_json::json!({ "attempt": 1, "stream": "stdout", "text": text });
        format!("event: output\nid: {id}\ndata: {data}\n\n")
    }

    /// Node that sends one of these responses on each connection; returns the requests.
    async fn node(answers: Vec<String>) -> (TaskClient, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                asked.push(String::from_utf8(head).unwrap());
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
            asked
        });
        (TaskClient::new(&AdminFlag::of(&address)), asked)
    }

    #[tokio::test]
    async fn a_lost_connection_is_resumed() {
        let refused = "HTTP/1.1 503 Unavailable\r\ncontent-length: 14\r\n\r\n{\"message\":\"\"}";
        let (client, asked) = node(vec![
            format!(
                "{HEAD}{}{}event: output\ndata: {{\"att",
                status(TaskStatus::Running),
                output("1.4.0", "one\n")
            ),
            refused.to_owned(),
            String::new(),
            format!(
                "{HEAD}: still here\n\n{}{}",
                output("1.8.0", "two\n"),
                status(TaskStatus::Succeeded)
            ),
        ])
        .await;
        let mut observed = Observed::default();
        let over = follow(&client, &"a".parse().unwrap(), &mut observed).await.unwrap();
        assert_eq!(over.status, TaskStatus::Succeeded);
        assert_eq!(observed.text, "one\ntwo\n", "nothing twice, nothing lost");
        assert_eq!((observed.statuses.len(), observed.failures), (2, 1));
        let asked = asked.await.unwrap();
        assert!(!asked[0].contains("last-event-id"));
        assert!(asked[3].contains("last-event-id: 1.4.0"), "{}", asked[3]);
    }

    #[tokio::test]
    async fn an_unknown_task_is_an_error_at_once() {
        let body = r#"{"message":"there is no task a","reason":"unknown_task"}"#;
        let length = body.len();
        let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\n\r\n{body}");
        let (client, _asked) = node(vec![answer]).await;
        let failure = follow(&client, &"a".parse().unwrap(), &mut Observed::default()).await;
        assert_eq!(failure.unwrap_err().to_string(), "there is no task a");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_node_is_given_up() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let client = TaskClient::new(&AdminFlag::of(&address.to_string()));
        let mut observed = Observed::default();
        let failure = follow(&client, &"a".parse().unwrap(), &mut observed).await.unwrap_err();
        let text = failure.to_string();
        let resume = format!("`tidegate logs --admin {address} a --follow`");
        assert!(text.contains("continues") && text.contains(&resume), "{text}");
        assert_eq!(observed.failures, 1, "said once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_only_repeats_itself_is_given_up() {
        let again = format!("{HEAD}{}", status(TaskStatus::Running));
        let (client, _asked) = node(vec![again; 100]).await;
        let failure = follow(&client, &"a".parse().unwrap(), &mut Observed::default()).await;
        assert!(failure.unwrap_err().to_string().contains("can't follow task a"));
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!(pause(0), PAUSE_FIRST);
        assert!((0..40).all(|n| pause(n) <= pause(n + 1) && pause(n) <= PAUSE_MAX));
    }

    #[test]
    fn a_verdict_says_how_and_why() {
        let mut view = format::example();
        (view.status, view.attempt) = (TaskStatus::Failed, 3);
        (view.reason, view.exit_code) = (Some(EndReason::Exit), Some(7));
        assert_eq!(verdict(&view), "task a failed in 3 attempts: exit 7");
        (view.status, view.reason, view.attempt) = (TaskStatus::Cancelled, None, 0);
        assert_eq!(verdict(&view), "task a was cancelled");
    }
}
