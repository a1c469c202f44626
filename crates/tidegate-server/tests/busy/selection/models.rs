//! Requests go to who serves their model, and a busy model is no trouble to another.

use crate::support::{Answer, Client, TestGateway, eventually};
use crate::traffic::{
    CHAT, Flood, chat, count, fast_mock, post, post_json, slow_mock, until, upstream_toml,
    without_queue,
};
use crate::upstream::{Upstream, page};
use http_body_util::Full;
use serde_json::{Value, json};

/// A gateway before an upstream of model `a` and one of model `b`.
async fn two_models(config: &str) -> (Upstream, Upstream, TestGateway) {
    let (a, b) = (Upstream::start().await, Upstream::start().await);
    let config = format!("{config}\n{}{}", upstream_toml(&a, &["a"]), upstream_toml(&b, &["b"]));
    let gateway = without_queue(&config, &[]);
    (a, b, gateway)
}

async fn by_header(gateway: &TestGateway, name: &str, model: &str, body: &Value) -> Answer {
    let client = Client::new(gateway.address);
    let mut request = post(client, CHAT, body.to_string());
    let name: http::HeaderName = name.parse().unwrap();
    request.headers_mut().insert(name, model.parse().unwrap());
    client.send(request).await
}

#[tokio::test]
async fn the_model_is_read_from_the_json() {
    let (a, b, gateway) = two_models("").await;
    for _ in 0..10 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("a")).await.status, 200);
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
    }
    for (upstream, model) in [(a, "a"), (b, "b")] {
        assert_eq!(upstream.came().len(), 10, "{model}");
        let of = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["model"].clone();
        assert!(upstream.came().iter().all(|one| of(&one.body) == model));
    }
}

#[tokio::test]
async fn a_header_names_it_before_the_json_does() {
    let (a, b, gateway) = two_models("").await;
    for _ in 0..5 {
        by_header(&gateway, "tidegate-model", "b", &chat("a")).await;
        let client = Client::new(gateway.address);
        let get = client.request("GET", "/x").header("tidegate-model", "a");
        assert_eq!(client.send(get.body(Full::default()).unwrap()).await.status, 200);
    }
    assert_eq!((a.came().len(), b.came().len()), (5, 5));
}

#[tokio::test]
async fn the_header_can_have_another_name() {
    let (a, b, gateway) = two_models("[routing]\nmodel_header = \"x-model\"\n").await;
    for _ in 0..5 {
        by_header(&gateway, "x-model", "b", &chat("a")).await;
        by_header(&gateway, "tidegate-model", "b", &chat("a")).await;
    }
    assert_eq!((a.came().len(), b.came().len()), (5, 5));
}

#[tokio::test]
async fn a_route_names_it_for_what_says_nothing_itself() {
    let config = "[[route]]\npath_prefix = \"/for-a\"\nmodel = \"a\"\n\
                  [[route]]\npath_prefix = \"/for-b\"\nmodel = \"b\"\n";
    let (a, b, gateway) = two_models(config).await;
    let client = Client::new(gateway.address);
    for _ in 0..5 {
        assert_eq!(client.get("/for-a/x").await.status, 200);
        assert_eq!(client.send(post(client, "/for-b", "no json")).await.status, 200);
    }
    assert!(a.came().iter().all(|one| one.path == "/for-a/x"));
    assert_eq!((a.came().len(), b.came().len()), (5, 5));
}

#[tokio::test]
async fn a_busy_model_is_refused_while_another_is_served() {
    let config = "[[model]]\nname = \"a\"\nactive_requests_threshold = 2\n\
                  [[model]]\nname = \"b\"\nactive_requests_threshold = 5\n";
    let (a, b, gateway) = two_models(config).await;
    let client = Client::new(gateway.address);
    a.close();
    b.close();
    let mut of_a = Flood::new(client, 20, || post(client, CHAT, chat("a").to_string()));
    let mut of_b = Flood::new(client, 20, || post(client, CHAT, chat("b").to_string()));
    let refused = of_a.answers(18).await;
    assert_eq!(count(&refused, 503), 18);
    assert_eq!(refused[0].json()["total_upstreams"], 1, "of this model");
    assert_eq!(count(&of_b.answers(15).await, 503), 15);
    eventually("each has its own", || (a.active(), b.active()) == (2, 5)).await;
    b.open();
    assert_eq!(count(&of_b.rest().await, 200), 5);
    for _ in 0..10 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
        assert_eq!(post_json(gateway.address, CHAT, &chat("a")).await.status, 503);
    }
    a.open();
    assert_eq!(count(&of_a.rest().await, 200), 2);
    gateway.balances().await;
}

#[tokio::test]
async fn models_are_learned_from_the_servers() {
    let named = |name: &'static str| {
        fast_mock(|config| {
            config.name = format!("mock-{name}");
            config.models = vec![name.to_owned(), format!("{name}/lora")];
        })
    };
    let (a, b) = (named("a"), named("b"));
    let config = "[routing]\nload_source = \"scrape\"\n";
    let gateway = without_queue(config, &[a.address(), b.address()]);
    until(&gateway, "all models are known", |stats| stats["models"].as_array().unwrap().len() >= 4)
        .await;
    for name in ["a", "b"] {
        for model in [name.to_owned(), format!("{name}/lora")] {
            let answer = post_json(gateway.address, CHAT, &chat(&model)).await;
            assert_eq!(answer.status, 200, "{model}: {}", answer.text());
            assert_eq!(answer.header("x-tidegate-mock"), format!("mock-{name}"));
        }
    }
    let change = json!({"model": "a/lora", "active_requests_threshold": 0});
    assert_eq!(post_json(gateway.address, "/busy_threshold", &change).await.status, 200);
    for (model, status) in [("a/lora", 503), ("a", 200), ("b", 200), ("b/lora", 200)] {
        let answer = post_json(gateway.address, CHAT, &chat(model)).await;
        assert_eq!(answer.status, status, "{model}");
    }
    let unknown = post_json(gateway.address, CHAT, &chat("none")).await;
    assert_eq!(unknown.status, 404, "the servers' own answer");
    assert_eq!(unknown.json()["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn a_server_that_is_just_starting_is_asked_for_its_models_again_soon() {
    let upstream = Upstream::start().await.telling(&page(&[(0, 1000, 0, 0)]));
    upstream.start_models();
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
                  active_requests_threshold = 3\n";
    let gateway = without_queue(config, &[upstream.address]);
    eventually("it was asked", || upstream.models_asked() > 0).await;
    let before = upstream.pages_asked();
    upstream.tell_model("late");
    until(&gateway, "the model is known", |stats| stats["models"][0]["model"] == "late").await;
    // Those who told their models are asked again after some 1,500.
    let pages = upstream.pages_asked() - before;
    assert!(pages < 500, "{pages} pages of metrics were read meanwhile");
}

#[tokio::test]
async fn a_full_server_of_one_model_is_no_trouble_to_the_other() {
    let full = slow_mock(|config| config.models = vec!["a".to_owned()]);
    let idle = fast_mock(|config| config.models = vec!["b".to_owned()]);
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 20\n\
                  active_requests_threshold = 3\n";
    let gateway = without_queue(config, &[full.address(), idle.address()]);
    until(&gateway, "both models are known", |stats| stats["models"][1]["model"] == "b").await;
    let client = Client::new(gateway.address);
    // Somebody else fills it.
    let mock = Client::new(full.address());
    let held = Flood::new(mock, 3, || post(mock, CHAT, chat("a").to_string()));
    until(&gateway, "it says that it is full", |stats| stats["models"][0]["busy"] == 1).await;
    let refused = Flood::new(client, 20, || post(client, CHAT, chat("a").to_string()));
    assert_eq!(count(&refused.rest().await, 503), 20);
    for _ in 0..20 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
    }
    held.leave().await;
    until(&gateway, "it says that it is free", |stats| stats["models"][0]["busy"] == 0).await;
}

#[tokio::test]
async fn what_names_no_model_has_thresholds_that_can_be_changed_too() {
    let (_a, _b, gateway) = two_models("[routing]\nactive_requests_threshold = 0\n").await;
    let client = Client::new(gateway.address);
    assert_eq!(client.get("/").await.status, 503);
    for model in ["a", "b"] {
        let delete = client.request("DELETE", &format!("/busy_threshold?model={model}"));
        assert_eq!(client.send(delete.body(Full::default()).unwrap()).await.status, 200);
    }
    let listed = client.get("/busy_threshold").await.json();
    assert_eq!(listed["thresholds"][2]["model"], "*", "what is in force is told: {listed}");
    let clear = client.request("DELETE", "/busy_threshold?model=*");
    assert_eq!(client.send(clear.body(Full::default()).unwrap()).await.status, 200);
    assert_eq!(client.get("/").await.status, 200);
}
