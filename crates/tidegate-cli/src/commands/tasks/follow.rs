use super::client::{Events, NotFollowed, TaskClient, typed};
use super::sse::{Event, SseParser};
use super::words;
use crate::failure::Failure;
use serde_json::Value;
use std::time::Duration;
use tidegate::task::{OutputChunk, TaskId, TaskStatus};
use tidegate_server::manager::TaskView;
use tokio::time::{Instant, sleep};

/// How often in a row a connection may be lost, or not be had, before it is given up: with the pauses half a
/// minute, in which a node restarts.
const TROUBLES_MAX: u32 = 10;
const PAUSE_FIRST: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What somebody who follows a task wants to know.
pub trait Reader {
    /// It stands here now.
    fn status(&mut self, view: &TaskView);
    /// It wrote this.
    fn output(&mut self, attempt: u32, chunk: &OutputChunk);
    /// The connection was lost, and is had again.
    fn trouble(&mut self, why: &str);
}

/// Follows a task to its end, over as many connections as it takes.
struct Follower<'a, R> {
    reader: &'a mut R,
    parser: SseParser,
    /// What it was last told that the task is doing.
    status: Option<TaskStatus>,
    /// Connections in a row that brought nothing new.
    troubles: u32,
}

/// Follows a task to its end; returns how it ended.
///
/// # Errors
///
/// When there is no such task, or the node is not there for too long. The task goes on.
///
/// # Cancel safety
///
/// Dropped early, everything that the reader was told stands, and the task goes on.
pub async fn follow(
    client: &TaskClient,
    id: &TaskId,
    reader: &mut impl Reader,
) -> Result<TaskView, Failure> {
    let parser = SseParser::default();
    let mut follower = Follower { reader, parser, status: None, troubles: 0 };
    loop {
        let trouble = match client.events(id, &mut follower.parser).await {
            Ok(events) => match follower.read(events).await? {
                Some(over) => return Ok(over),
                None => Failure::Runtime("the connection ended".to_owned()),
            },
            Err(NotFollowed::Yet(trouble)) => trouble,
            Err(NotFollowed::Ever(failure)) => return Err(failure),
        };
        if follower.troubles >= TROUBLES_MAX {
            return Err(Failure::Runtime(format!(
                "lost sight of the task {id}, which goes on: {trouble}; `tidegate logs {id} --follow` takes it up again"
            )));
        }
        if follower.troubles == 1 {
            // Once alone is nothing: a proxy between here and there may have had enough.
            follower.reader.trouble(&trouble.to_string());
        }
        sleep(pause(follower.troubles)).await;
        follower.troubles += 1;
    }
}

fn pause(troubles: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << troubles.min(16)).min(PAUSE_MAX)
}

// === impl Follower ===

impl<R: Reader> Follower<'_, R> {
    /// Reads one connection to its end; `None` when the task is not over by then.
    async fn read(&mut self, mut events: Events) -> Result<Option<TaskView>, Failure> {
        let since = Instant::now();
        while let Some(event) = events.next(&mut self.parser).await? {
            if let Some(over) = self.take(&event)? {
                return Ok(Some(over));
            }
        }
        // One that lasted was none of a row of troubles, however little was said on it.
        if since.elapsed() > PAUSE_MAX {
            self.troubles = 0;
        }
        Ok(None)
    }

    fn take(&mut self, event: &Event) -> Result<Option<TaskView>, Failure> {
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|error| Failure::Runtime(format!("not a node's event: {error}")))?;
        match &*event.name {
            "status" => {
                let view: TaskView = typed(data)?;
                if self.status.replace(view.status) != Some(view.status) {
                    self.troubles = 0;
                }
                self.reader.status(&view);
                return Ok(view.status.is_over().then_some(view));
            }
            "output" => {
                self.troubles = 0;
                let attempt = data["attempt"].as_u64().and_then(|n| u32::try_from(n).ok());
                self.reader.output(attempt.unwrap_or(0), &typed::<OutputChunk>(data)?);
            }
            // What was missed is told again by what follows; others are for others.
            _ => {}
        }
        Ok(None)
    }
}

/// What is said of a task that is over and did not succeed.
pub fn verdict(view: &TaskView) -> String {
    let id = &view.id;
    let status = match view.status {
        TaskStatus::Cancelled => "was cancelled",
        other => other.name(),
    };
    let tries = match view.attempt {
        0 | 1 => String::new(),
        attempts => format!(" in {attempts} attempts"),
    };
    match words::ending(view) {
        Some(why) => format!("the task {id} {status}{tries}: {why}"),
        None => format!("the task {id} {status}{tries}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold_flags::AdminFlag;
    use tidegate::task::{EndReason, OutputStream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[derive(Default)]
    struct Heard {
        text: String,
        statuses: Vec<TaskStatus>,
        troubles: usize,
    }

    impl Reader for Heard {
        fn status(&mut self, view: &TaskView) {
            self.statuses.push(view.status);
        }

        fn output(&mut self, attempt: u32, chunk: &OutputChunk) {
            assert_eq!((attempt, chunk.stream), (1, OutputStream::Stdout));
            self.text += &chunk.text;
        }

        fn trouble(&mut self, _: &str) {
            self.troubles += 1;
        }
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

    fn status(status: TaskStatus) -> String {
        let view = TaskView { status, ..words::example() };
        let view = serde_json::to_string(&view).unwrap();
        format!("event: status\nid: 1.4.0\ndata: {view}\n\n")
    }

    fn output(id: &str, text: &str) -> String {
        let data = serde_json::json!({ "attempt": 1, "stream": "stdout", "text": text });
        format!("event: output\nid: {id}\ndata: {data}\n\n")
    }

    /// A node that gives each connection one of these, and ends it; returns what it was asked.
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
        (TaskClient::new(&AdminFlag { address }), asked)
    }

    #[tokio::test]
    async fn a_connection_that_breaks_is_taken_up_where_it_ended() {
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
        let mut heard = Heard::default();
        let over = follow(&client, &"a".parse().unwrap(), &mut heard).await.unwrap();
        assert_eq!(over.status, TaskStatus::Succeeded);
        assert_eq!(heard.text, "one\ntwo\n", "nothing twice, nothing lost");
        assert_eq!((heard.statuses.len(), heard.troubles), (2, 1));
        let asked = asked.await.unwrap();
        assert!(!asked[0].contains("last-event-id"));
        assert!(asked[3].contains("last-event-id: 1.4.0"), "{}", asked[3]);
    }

    #[tokio::test]
    async fn a_task_that_is_not_there_is_told_at_once() {
        let body = r#"{"message":"there is no task a","reason":"unknown_task"}"#;
        let length = body.len();
        let answer = format!("HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\n\r\n{body}");
        let (client, _asked) = node(vec![answer]).await;
        let failure = follow(&client, &"a".parse().unwrap(), &mut Heard::default()).await;
        assert_eq!(failure.unwrap_err().to_string(), "there is no task a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_stays_away_is_given_up() {
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let client = TaskClient::new(&AdminFlag { address: address.to_string() });
        let mut heard = Heard::default();
        let failure = follow(&client, &"a".parse().unwrap(), &mut heard).await.unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("goes on") && text.contains("tidegate logs a --follow"), "{text}");
        assert_eq!(heard.troubles, 1, "said once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_only_repeats_itself_is_given_up() {
        let again = format!("{HEAD}{}", status(TaskStatus::Running));
        let (client, _asked) = node(vec![again; 100]).await;
        let failure = follow(&client, &"a".parse().unwrap(), &mut Heard::default()).await;
        assert!(failure.unwrap_err().to_string().contains("lost sight of the task a"));
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!(pause(0), PAUSE_FIRST);
        assert!((0..40).all(|n| pause(n) <= pause(n + 1) && pause(n) <= PAUSE_MAX));
    }

    #[test]
    fn a_verdict_says_how_and_why() {
        let mut view = words::example();
        (view.status, view.attempt) = (TaskStatus::Failed, 3);
        (view.reason, view.exit_code) = (Some(EndReason::Exit), Some(7));
        assert_eq!(verdict(&view), "the task a failed in 3 attempts: exit 7");
        (view.status, view.reason, view.attempt) = (TaskStatus::Cancelled, None, 0);
        assert_eq!(verdict(&view), "the task a was cancelled");
    }
}
