use http::HeaderMap;
use serde_json::json;
use tidegate::MessagePriority;
use tidegate::task::{TaskLimits, TaskSpec};
use tidegate_server::http::admission::Claim;
use tidegate_server::tasks::api::{SubmissionHead, SubmissionSettings, TaskApiError};
use tidegate_server::tasks::manager::Submit;

/// Longer than the text of any refusal: a response does not grow with its request.
const ERROR_BYTES_MAX: usize = 2_048;

/// Parses the body of a submitted task. It never has more than its client's priority, and is the same after it was
/// written again.
pub fn run(input: &[u8]) -> bool {
    let submit = match submission(input) {
        Ok(submit) => submit,
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes: {text}", text.len());
            return false;
        }
    };
    assert!(matches!(submit.spec.priority, MessagePriority::Normal | MessagePriority::Low));
    assert_eq!(submit.client.as_deref(), Some("batch"));
    let TaskSpec { runtime, code, args, env, priority, timeout_ms, retries } = &submit.spec;
    let mut body = json!({
        "runtime": runtime, "code": code, "args": args, "env": env, "priority": priority.name(),
        "timeout_ms": timeout_ms, "retries": retries,
    });
    if let Some(id) = &submit.id {
        body["id"] = json!(id.as_str());
    }
    let again = submission(body.to_string().as_bytes()).expect("what was accepted once");
    assert_eq!((&again.id, &again.spec), (&submit.id, &submit.spec));
    if let Err(error) = submit.spec.check(&TaskLimits::default()) {
        assert!(error.to_string().len() <= ERROR_BYTES_MAX);
        return false;
    }
    true
}

fn submission(body: &[u8]) -> Result<Submit, TaskApiError> {
    let claim = Claim {
        client: Some("batch"),
        is_operator: false,
        most: MessagePriority::Normal,
        priority: MessagePriority::Normal,
    };
    let settings = SubmissionSettings { limits: TaskLimits::default(), timeout_ms: 60_000 };
    SubmissionHead::of(&HeaderMap::new(), claim)?.with_body(body, &settings)
}
