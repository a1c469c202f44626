//! The `Authorization` header on its way to an upstream.

use crate::support::{Client, TestGateway, Upstream};
use http_body_util::Full;
use std::collections::BTreeMap;
use tidegate_server::config::{Config, LoadSource, Loader, TokenDigest};

const A: &str = "tg_client-a-0123456789";
const B: &str = "plain-client-b-0123456789";

/// Two clients, one of them by digest, and requests without a token up to Low.
fn clients(more: &str) -> String {
    format!(
        "{more}\n[claims]\nanonymous = \"low\"\n[[client]]\nname = \"a\"\ntoken_sha256 = \"{}\"\n\
         [[client]]\nname = \"b\"\ntoken = \"{B}\"\n",
        TokenDigest::of(A.as_bytes()).to_hex()
    )
}

async fn send(gateway: &TestGateway, fields: &[(&str, &str)]) -> u16 {
    let client = Client::new(gateway.address);
    let mut request = client.request("GET", "/");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    client.send(request.body(Full::default()).unwrap()).await.status.as_u16()
}

/// The `Authorization` that the upstream saw last.
fn seen(upstream: &Upstream) -> Option<String> {
    let last = upstream.last();
    assert!(!last.headers.contains_key("tidegate-token"), "{last:?}");
    let key = last.headers.get("x-api-key");
    assert!(key.is_none_or(|key| key == "sk-upstream"), "{last:?}");
    last.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_clients_token_ends_at_the_gateway_and_other_keys_pass() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(&clients(""), &[upstream.address]);
    for token in [A, B] {
        assert_eq!(send(&gateway, &[("authorization", &format!("Bearer {token}"))]).await, 200);
        assert_eq!(seen(&upstream), None, "{token}");
    }
    for (field, value) in [("authorization", A), ("authorization", B), ("x-api-key", B)] {
        assert_eq!(send(&gateway, &[(field, value)]).await, 200);
        assert_eq!(seen(&upstream), None, "{field}: {value}");
    }
    assert_eq!(send(&gateway, &[("authorization", &format!("Bearer\t{A}"))]).await, 200);
    assert_eq!(seen(&upstream), None, "another space");
    assert_eq!(send(&gateway, &[("x-api-key", "sk-upstream")]).await, 200);
    assert!(upstream.last().headers.contains_key("x-api-key"), "it is not of this gateway");
    assert_eq!(send(&gateway, &[("authorization", "Bearer sk-upstream")]).await, 200);
    assert_eq!(seen(&upstream).as_deref(), Some("Bearer sk-upstream"));
    let both = [("tidegate-token", A), ("authorization", "Bearer sk-upstream")];
    assert_eq!(send(&gateway, &both).await, 200);
    assert_eq!(seen(&upstream).as_deref(), Some("Bearer sk-upstream"));
    let other = [("tidegate-token", A), ("authorization", &format!("Bearer {B}"))];
    assert_eq!(send(&gateway, &other).await, 200);
    assert_eq!(seen(&upstream), None, "another client's token");
    let asked = upstream.seen().len();
    assert_eq!(send(&gateway, &[("authorization", "Bearer tg_revoked-0123456789")]).await, 401);
    assert_eq!(send(&gateway, &[("tidegate-token", "sk-upstream")]).await, 401);
    assert_eq!(upstream.seen().len(), asked, "nothing of it reached the upstream");
}

#[tokio::test]
async fn a_bearer_token_tells_who_asks() {
    let upstream = Upstream::start().await;
    let config = clients("").replace("anonymous = \"low\"", "anonymous = \"refuse\"");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let high = ("tidegate-priority", "high");
    assert_eq!(send(&gateway, &[high, ("authorization", &format!("bearer {A}"))]).await, 200);
    let stats = gateway.inner().admission().tracker().stats();
    assert_eq!(stats.high_acquired, 1);
    for wrong in ["Bearer sk-upstream", "Basic YTpi", "Bearer", &format!("Bearer {A}x")] {
        assert_eq!(send(&gateway, &[high, ("authorization", wrong)]).await, 401, "{wrong}");
    }
    assert_eq!(send(&gateway, &[high]).await, 401);
}

#[tokio::test]
async fn the_header_can_be_passed_on_as_it_came() {
    let upstream = Upstream::start().await;
    let config = clients("[proxy]\nauthorization = \"pass\"");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let own = format!("Bearer {A}");
    assert_eq!(send(&gateway, &[("authorization", &own)]).await, 200);
    assert_eq!(seen(&upstream), Some(own));
}

#[tokio::test]
async fn each_upstream_gets_its_own_key_and_no_other() {
    let (keyed, bare) = (Upstream::start().await, Upstream::start().await);
    let text = format!(
        "{}\n[[upstream]]\nurl = \"http://{}\"\nmodels = [\"keyed\"]\napi_key_env = \"KEY\"\n\
         [[upstream]]\nurl = \"http://{}\"\nmodels = [\"bare\"]\n",
        clients("[proxy]\nauthorization = \"replace\""),
        keyed.address,
        bare.address
    );
    let env = BTreeMap::from([("KEY".to_owned(), "sk-of-the-upstream".to_owned())]);
    let mut config = Loader::new().file("f", text).env(env).load().unwrap().config;
    config.routing.load_source = LoadSource::Headers;
    assert!(!format!("{config:?}").contains("sk-of-the-upstream"));
    let gateway = TestGateway::start_with(config);
    for authorization in [format!("Bearer {A}"), "Bearer sk-of-a-client".to_owned()] {
        for (model, upstream, key) in
            [("keyed", &keyed, Some("Bearer sk-of-the-upstream")), ("bare", &bare, None)]
        {
            let fields = [("tidegate-model", model), ("authorization", &authorization)];
            assert_eq!(send(&gateway, &fields).await, 200);
            assert_eq!(seen(upstream).as_deref(), key, "{model}");
        }
    }
}

#[test]
fn without_clients_a_token_means_nothing() {
    let admission = tidegate_server::http::admission::Admission::new(&Config::default());
    let request = http::Request::get("/").header("authorization", format!("Bearer {A}"));
    let request = request.body(()).unwrap();
    let classified = admission.classifier().classified(&request).unwrap();
    assert!(classified.client.is_none() && !classified.tokens.authorization);
}
