//! Clients of one priority share the slots by their weights, however many requests each has.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::Flood;
use crate::upstream::Upstream;
use crate::waiting::{one_slot, waiting};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;

const BUSY: &str = "busy-0123456789abcdef";
const QUIET: &str = "quiet-0123456789abcdef";

/// One slot, a queue, and two clients, of which one has this weight.
fn two_clients(weight: u32) -> String {
    format!(
        "{}[[client]]\nname = \"busy\"\ntoken = \"{BUSY}\"\nweight = {weight}\n\
         [[client]]\nname = \"quiet\"\ntoken = \"{QUIET}\"\n",
        one_slot(1_000)
    )
}

/// A request of a client, whose path tells its token.
fn request(client: Client, token: &str, body: usize) -> Request<Full<Bytes>> {
    let request = client.request("POST", &format!("/{token}")).header("tidegate-token", token);
    request.body(Full::from(vec![b'x'; body])).unwrap()
}

/// Of the first so many that were served from the queue, those of each client.
fn served(upstream: &Upstream, first: usize) -> (usize, usize) {
    let paths = upstream.paths();
    let of = |token: &str| {
        let path = format!("/{token}");
        paths.iter().skip(1).take(first).filter(|one| **one == path).count()
    };
    (of(BUSY), of(QUIET))
}

/// Shares of the two when both have this many requests of this size, all queued before the first is served.
async fn shares(
    weight: u32,
    (busy, busy_bytes): (usize, usize),
    (quiet, quiet_bytes): (usize, usize),
    first: usize,
) -> (usize, usize) {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&two_clients(weight), &[upstream.address]);
    let client = Client::new(gateway.address);
    let one = Flood::of_gets(client, 1);
    eventually("the slot is taken", || upstream.active() == 1).await;
    let of_busy = Flood::new(client, busy, || request(client, BUSY, busy_bytes));
    eventually("the busy client waits", || waiting(&gateway) == busy).await;
    let of_quiet = Flood::new(client, quiet, || request(client, QUIET, quiet_bytes));
    eventually("both wait", || waiting(&gateway) == busy + quiet).await;
    upstream.open();
    for flood in [one, of_busy, of_quiet] {
        assert!(flood.rest().await.iter().all(|answer| answer.status == 200));
    }
    gateway.balances().await;
    served(&upstream, first)
}

#[tokio::test]
async fn ten_requests_of_one_client_for_each_of_another_are_served_one_to_one() {
    let (busy, quiet) = shares(1, (100, 0), (10, 0), 20).await;
    assert!(busy.abs_diff(quiet) <= 1, "{busy} to {quiet}");
}

#[tokio::test]
async fn a_client_of_weight_3_is_served_three_times_as_often_as_one_of_weight_1() {
    let (heavy, light) = shares(3, (60, 0), (60, 0), 40).await;
    assert!(heavy.abs_diff(30) <= 2 && heavy + light == 40, "{heavy} to {light}");
}

#[tokio::test]
async fn a_request_counts_by_its_size() {
    // 4,000 bytes are 1,000 tokens: one of them for ten of 400 bytes.
    let (long, short) = shares(1, (20, 4_000), (100, 400), 66).await;
    assert!(long.abs_diff(6) <= 1 && long + short == 66, "{long} to {short}");
}

#[tokio::test]
async fn a_client_that_sends_one_at_a_time_is_not_starved_by_the_backlog_of_another() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&two_clients(1), &[upstream.address]);
    let client = Client::new(gateway.address);
    let backlog = 60;
    let one = Flood::of_gets(client, 1);
    eventually("the slot is taken", || upstream.active() == 1).await;
    let of_busy = Flood::new(client, backlog, || request(client, BUSY, 0));
    eventually("the busy client waits", || waiting(&gateway) == backlog).await;
    let of_quiet = tokio::spawn(async move {
        loop {
            let answer = client.send(request(client, QUIET, 0)).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    for round in 1..=40 {
        let is_next = || {
            let paths = upstream.paths();
            let (busy, _) = served(&upstream, round);
            let in_slot = paths.last().is_some_and(|last| *last == format!("/{QUIET}"));
            paths.len() == round && waiting(&gateway) == backlog - busy + usize::from(!in_slot)
        };
        eventually("one is served and all others wait", is_next).await;
        upstream.let_one_through();
    }
    let (busy, quiet) = served(&upstream, 38);
    assert!(busy.abs_diff(quiet) <= 2, "{busy} to {quiet}");
    of_quiet.abort();
    of_busy.leave().await;
    one.rest().await;
    gateway.balances().await;
}
