use super::support::{CHAT, TEXT, TestMock, chat, fast, streamed, text};
use http::StatusCode;
use serde_json::{Value, json};
use tidegate_testkit::mock::MockConfig;

#[tokio::test]
async fn a_chat_completion_has_openai_s_shape() {
    let mock = TestMock::start(fast());
    let answer = mock.post(CHAT, &chat(14)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("x-tidegate-mock"), "mock-1");
    let json = answer.json();
    assert!(json["id"].as_str().unwrap().starts_with("chatcmpl-"), "{json}");
    assert!(json["created"].as_u64().unwrap() > 1_700_000_000, "{json}");
    assert_eq!(
        (&json["object"], &json["model"]),
        (&json!("chat.completion"), &json!("tidegate-mock"))
    );
    let choice = &json["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("length")));
    assert_eq!(choice["message"]["role"], "assistant");
    assert!(choice["message"]["content"].as_str().unwrap().contains(' '), "{json}");
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 14, "total_tokens": 19});
    assert_eq!(json["usage"], usage);
}

#[tokio::test]
async fn a_streamed_chat_says_the_same_piece_by_piece() {
    let whole = TestMock::start(fast()).post(CHAT, &chat(14)).await.json();
    for mock in [TestMock::start(fast()), TestMock::start(fast()).over_h2()] {
        let mut request = streamed(14);
        request["stream_options"] = json!({"include_usage": true});
        let answer = mock.post(CHAT, &request).await;
        assert_eq!(answer.header("content-type"), "text/event-stream");
        let mut events = answer.events();
        assert_eq!(events.len(), 1 + 14 + 1 + 1, "role, tokens, finish, usage");
        let usage = events.pop().unwrap();
        assert_eq!((&usage["choices"], &usage["usage"]), (&json!([]), &whole["usage"]));
        for event in &events {
            assert_eq!(
                (&event["object"], &event["id"]),
                (&json!("chat.completion.chunk"), &whole["id"])
            );
            assert!(event["usage"].is_null());
        }
        let delta = |event: &Value| event["choices"][0]["delta"].clone();
        assert_eq!(delta(&events[0]), json!({"role": "assistant", "content": ""}));
        let finish = events.pop().unwrap();
        assert_eq!(delta(&finish), json!({}));
        assert_eq!(finish["choices"][0]["finish_reason"], "length");
        let said: String = events
            .iter()
            .map(|event| delta(event)["content"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(said, whole["choices"][0]["message"]["content"].as_str().unwrap());
    }
}

#[tokio::test]
async fn text_completions_have_their_own_shape() {
    let mock = TestMock::start(fast());
    let whole = mock.post(TEXT, &text(9, 3)).await.json();
    assert_eq!(
        (&whole["object"], &whole["usage"]["prompt_tokens"]),
        (&json!("text_completion"), &json!(9))
    );
    assert_eq!(whole["choices"][0]["finish_reason"], "length");

    let mut request = text(9, 3);
    request["stream"] = json!(true);
    let events = mock.post(TEXT, &request).await.events();
    assert_eq!(events.len(), 3 + 1);
    assert!(events.iter().all(|event| event["object"] == "text_completion"));
    assert!(events.iter().all(|event| event.get("usage").is_none()), "it was not asked for");
    assert_eq!(events[3]["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn the_newer_name_of_the_length_wins_and_without_one_it_stops_by_itself() {
    let mock = TestMock::start(fast());
    let mut request = chat(9);
    request["max_completion_tokens"] = json!(4);
    assert_eq!(mock.post(CHAT, &request).await.json()["usage"]["completion_tokens"], 4);
    let mut open = chat(9);
    open["max_tokens"] = Value::Null;
    let json = mock.post(CHAT, &open).await.json();
    assert_eq!(json["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn the_same_seed_and_requests_give_the_same_answers() {
    let answers = async |seed: u64| {
        let mut config = fast();
        config.engine.seed = seed;
        let mock = TestMock::start(config);
        let mut said = Vec::new();
        for _ in 0..4 {
            let request = json!({"model": "tidegate-mock", "prompt": "hello"});
            let json = mock.post(TEXT, &request).await.json();
            said.push((json["choices"].clone(), json["usage"].clone(), json["id"].clone()));
        }
        said
    };
    assert_eq!(answers(7).await, answers(7).await);
    assert_ne!(answers(7).await, answers(8).await);
}

#[tokio::test]
async fn models_and_health_are_told() {
    let models = vec!["a".to_owned(), "b".to_owned()];
    let mock = TestMock::start(MockConfig { models, ..fast() });
    let list = mock.get("/v1/models").await.json();
    assert_eq!(list["object"], "list");
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(list["data"][0]["object"], "model");
    let health = mock.get("/health").await;
    assert_eq!((health.status, health.text()), (StatusCode::OK, ""));
}

#[tokio::test]
async fn every_other_path_gets_a_response_that_names_the_mock() {
    let mock = TestMock::start(fast());
    let answer = mock.send("PUT", "/any/path?ms=1", &[], "").await;
    let json = answer.json();
    assert_eq!((&json["method"], &json["path"]), (&json!("PUT"), &json!("/any/path")));
    assert!(json["mock"].as_str().unwrap().contains("not of your server"), "{json}");
    let events = mock.get("/events").await;
    assert_eq!(events.text().matches("data: event").count(), 10);
}
