use crate::support::{Answer, Client, RawUpstream, TestGateway, Upstream, eventually, raw};
use bytes::Bytes;
use http::Version;
use http_body_util::Full;

#[tokio::test]
async fn method_path_query_headers_and_body_arrive_as_they_were_sent() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client
        .request("PUT", "/a/b%20c?x=1&y=%2F")
        .header("x-custom", "kept")
        .body(Full::from("the body"))
        .unwrap();
    let answer = client.send(request).await;
    assert_eq!((answer.status.as_u16(), answer.text()), (200, "hello"));
    let seen = upstream.last();
    assert_eq!(seen.method, "PUT");
    assert_eq!(seen.uri, "/a/b%20c?x=1&y=%2F");
    assert_eq!(seen.headers["x-custom"], "kept");
    assert_eq!(seen.body, "the body");
    gateway.balances().await;
}

#[tokio::test]
async fn the_upstream_learns_who_asked_and_the_client_s_host_is_kept() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    Client::new(gateway.address).get("/").await;
    let headers = upstream.last().headers;
    assert_eq!(headers["host"], gateway.address.to_string());
    assert_eq!(headers["x-forwarded-for"], "127.0.0.1");
    assert_eq!(headers["x-forwarded-proto"], "http");
    assert_eq!(headers["x-forwarded-host"], gateway.address.to_string());
    let forwarded = format!("for=127.0.0.1;host=\"{}\";proto=http", gateway.address);
    assert_eq!(headers["forwarded"], forwarded);
    assert!(headers["via"].to_str().unwrap().starts_with("1.1 tidegate-"));
}

#[tokio::test]
async fn the_upstream_s_own_host_can_be_sent_instead() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[proxy]\nhost = \"upstream\"\n", &[upstream.address]);
    Client::new(gateway.address).get("/").await;
    assert_eq!(upstream.last().headers["host"], upstream.address.to_string());
}

#[tokio::test]
async fn hop_by_hop_fields_stop_here_in_both_directions() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client
        .request("GET", "/")
        .header("connection", "x-mine")
        .header("x-mine", "for the gateway alone")
        .header("keep-alive", "timeout=5")
        .header("te", "gzip")
        .header("proxy-authorization", "Basic c2VjcmV0")
        .header("tidegate-token", "a-token-for-the-gateway")
        .body(Full::default())
        .unwrap();
    let answer = client.send(request).await;
    let headers = upstream.last().headers;
    for name in
        ["connection", "x-mine", "keep-alive", "te", "proxy-authorization", "tidegate-token"]
    {
        assert!(!headers.contains_key(name), "{name} reached the upstream");
    }
    assert!(!answer.headers.contains_key("x-hop"));
    assert_eq!(answer.header("x-end"), "for the client");
}

#[tokio::test]
async fn http2_in_front_of_http1() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::h2(gateway.address);
    let request = client.request("POST", "/x?y").body(Full::from("two")).unwrap();
    let answer = client.send(request).await;
    assert_eq!((answer.version, answer.text()), (Version::HTTP_2, "hello"));
    let seen = upstream.last();
    assert_eq!((seen.version, seen.body), (Version::HTTP_11, Bytes::from("two")));
    assert_eq!(seen.headers["host"], gateway.address.to_string());
    gateway.balances().await;
}

#[tokio::test]
async fn http1_in_front_of_http2_by_prior_knowledge() {
    let upstream = Upstream::start().await;
    let config = format!("[[upstream]]\nurl = \"h2c://{}\"\n", upstream.address);
    let gateway = TestGateway::start(&config, &[]);
    let answer = Client::new(gateway.address).get("/p?q").await;
    assert_eq!((answer.version, answer.text()), (Version::HTTP_11, "hello"));
    let seen = upstream.last();
    assert_eq!(seen.version, Version::HTTP_2);
    assert_eq!(seen.uri.path_and_query().unwrap(), "/p?q");
    assert_eq!(seen.uri.authority().unwrap().as_str(), gateway.address.to_string());
    gateway.balances().await;
}

#[tokio::test]
async fn http2_on_both_sides_shares_one_upstream_connection_a_thread() {
    let upstream = Upstream::start().await;
    let config =
        format!("[listen]\nthreads = 1\n[[upstream]]\nurl = \"h2c://{}\"\n", upstream.address);
    let gateway = TestGateway::start(&config, &[]);
    for _ in 0..10 {
        assert_eq!(Client::h2(gateway.address).get("/").await.status, 200);
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn connections_to_an_upstream_are_used_again() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for _ in 0..20 {
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    }
    assert_eq!(upstream.connections(), 1);
    gateway.balances().await;
}

#[tokio::test]
async fn a_head_request_has_the_length_and_no_body() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let answer = client.send(client.request("HEAD", "/").body(Full::default()).unwrap()).await;
    assert_eq!((answer.header("content-length"), answer.body.len()), ("5", 0));
    gateway.balances().await;
}

#[tokio::test]
async fn statuses_of_the_upstream_are_passed_on() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for status in [201, 301, 404, 429, 500, 503] {
        let answer = Client::new(gateway.address).get(&format!("/?status={status}")).await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn http_1_0_without_a_host_is_served_and_http_1_1_without_one_is_not() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let old = raw(gateway.address, b"GET /old HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200") || old.starts_with("HTTP/1.1 200"), "{old}");
    assert!(old.ends_with("hello"), "{old}");
    let new = raw(gateway.address, b"GET /new HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(new.starts_with("HTTP/1.1 400") && new.contains("bad_host"), "{new}");
}

#[tokio::test]
async fn a_gateway_that_points_at_itself_notices() {
    let upstream = Upstream::start().await;
    let inner = TestGateway::start("", &[upstream.address]);
    // Find the inner one's mark, and send it a request that carries it.
    Client::new(inner.address).get("/").await;
    let via = upstream.last().headers["via"].clone();
    let client = Client::new(inner.address);
    let request = client.request("GET", "/").header("via", via).body(Full::default()).unwrap();
    let answer = client.send(request).await;
    assert_eq!((answer.status.as_u16(), answer.json()["reason"].as_str().unwrap()), (508, "loop"));
    inner.balances().await;
}

#[tokio::test]
async fn load_is_spread_over_all_upstreams() {
    let upstreams = [Upstream::closed().await, Upstream::closed().await, Upstream::closed().await];
    let gateway = TestGateway::start("", &upstreams.each_ref().map(|upstream| upstream.address));
    let client = Client::new(gateway.address);
    // As long as nobody has answered, none is slower than the others, however busy this machine is.
    let asked: Vec<_> =
        (0..60).map(|_| tokio::spawn(async move { client.get("/").await })).collect();
    let seen = || upstreams.each_ref().map(|upstream| upstream.seen().len());
    eventually("all have arrived", || seen().iter().sum::<usize>() == 60).await;
    assert!(seen().iter().all(|seen| *seen >= 10), "{:?} of 60", seen());
    upstreams.iter().for_each(|upstream| upstream.gate.open());
    for task in asked {
        assert_eq!(task.await.unwrap().status, 200);
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_cookie_that_http2_cut_into_crumbs_is_whole_again() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::h2(gateway.address);
    let request = client
        .request("GET", "/")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(Full::default())
        .unwrap();
    client.send(request).await;
    let cookies: Vec<_> = upstream.last().headers.get_all("cookie").iter().cloned().collect();
    assert_eq!(cookies, ["a=1; b=2"]);
}

#[tokio::test]
async fn a_get_with_a_body_of_unknown_length_keeps_it() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let request = b"GET /search HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\
                    connection: close\r\n\r\n5\r\nquery\r\n0\r\n\r\n";
    let answer = raw(gateway.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(upstream.last().body, "query");
}

#[tokio::test]
async fn every_response_has_one_date_and_that_of_the_upstream_is_kept() {
    let dated =
        "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n";
    let upstream = RawUpstream::saying(Box::leak(Box::new([dated]))).await;
    let bare = RawUpstream::saying(&["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let plain = TestGateway::start("", &[bare.address]);
    let dates = |answer: Answer| -> Vec<String> {
        let dates = answer.headers.get_all("date").iter();
        dates.map(|date| date.to_str().unwrap().to_owned()).collect()
    };
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        assert_eq!(dates(client.get("/").await), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
    }
    let own = [gateway.address, gateway.admin].map(|address| (address, "/health/live"));
    for (address, path) in own.into_iter().chain([(plain.address, "/")]) {
        for client in [Client::new(address), Client::h2(address)] {
            let dates = dates(client.get(path).await);
            assert!(dates.len() == 1 && dates[0].ends_with(" GMT"), "{dates:?}");
        }
    }
}
