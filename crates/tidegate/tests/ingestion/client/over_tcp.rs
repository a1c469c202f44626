//! Over TCP on loopback, in real time.

use super::support::{Plan, World, config, records};
use crate::reserved::Reserved;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::client::{ClientConfig, IngestClient};
use tidegate::retry::Decorrelated;
use tokio::net::TcpListener;
use tokio::time::timeout;

async fn listen(world: World) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let plan = world.next_plan();
            tokio::spawn(world.clone().serve(stream, plan));
        }
    });
    address
}

fn quick(sender: &str) -> ClientConfig {
    let (base, cap) = (Duration::from_millis(1), Duration::from_millis(20));
    ClientConfig { backoff: Decorrelated { base, cap }, ..config(sender) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_cut_connections_lose_nothing_and_repeat_nothing() {
    let cut = |n: usize| Plan {
        // Some before the welcome is out, some within a batch, some within an answer.
        read_max: 40 + n * 97 % 4_000,
        write_max: if n.is_multiple_of(3) { 1 + n * 31 % 700 } else { usize::MAX },
        ..Plan::default()
    };
    let world = World::new().plan((0..100).map(cut), Plan::default());
    let address = listen(world.clone()).await;
    let (client, _) = IngestClient::connect(address.to_string(), quick("a")).unwrap();
    let all = async {
        client.send_batch(&records(0..20_000)).await.unwrap();
        client.flush().await.unwrap();
    };
    timeout(Duration::from_secs(60), all).await.expect("a minute is enough");
    assert_eq!(world.stored(), (0..20_000).collect::<Vec<_>>());
    let stats = client.stats();
    assert!(stats.troubles >= 100 && stats.records_resent > 0, "{stats:?}");
    assert_eq!((stats.records_acked, stats.records_held, world.too_far()), (20_000, 0, 0));
}

#[tokio::test]
async fn a_server_that_starts_late_is_found() {
    let reserved = Reserved::new();
    let address = reserved.address;
    let (client, _) = IngestClient::connect(address.to_string(), quick("a")).unwrap();
    client.send_batch(&records(0..50)).await.unwrap();
    while client.stats().troubles < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let world = World::new();
    let listener = reserved.listen();
    let serving = world.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serving.clone().serve(stream, Plan::default()));
        }
    });
    timeout(Duration::from_secs(30), client.flush()).await.expect("it is found").unwrap();
    assert_eq!(world.stored().len(), 50);
    let trouble = client.stats().last_trouble.unwrap().to_string();
    assert!(trouble.starts_with(&format!("can't connect to {address}")), "{trouble}");
}
