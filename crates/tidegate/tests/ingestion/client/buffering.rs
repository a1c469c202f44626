//! What waits is bounded, and lasts as long as the server is away.

use super::support::{BlackHole, Pipes, Plan, World, config, record, records};
use std::time::Duration;
use tidegate::client::{
    ClientConfig, ClientConfigError, ClientError, ClientSendError, ClientTrySendError, FlushError,
    IngestClient, Trouble,
};
use tidegate::retry::Decorrelated;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn a_full_buffer_makes_its_producer_wait_and_loses_nothing() {
    let world = World::new().plan([], Plan::refusing());
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    let mut taken = 0;
    while client.try_send(&record(taken)).is_ok() {
        taken += 1;
    }
    assert_eq!(taken, 200, "as many as buffer_records says");
    assert_eq!(client.try_send(&record(taken)), Err(ClientTrySendError::Full));
    let hour = Duration::from_secs(3_600);
    assert!(timeout(hour, client.send(&record(taken))).await.is_err(), "it waits");
    assert_eq!(client.stats().records_taken, 200, "what was not waited for was not taken");

    // The server comes; all that was held arrives, and what waited for room as well.
    world.change(Plan::default());
    client.send_batch(&records(200..1_000)).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(world.stored(), (0..1_000).collect::<Vec<_>>());
    let stats = client.stats();
    assert_eq!((stats.connections, stats.records_resent), (1, 0));
    assert!(matches!(stats.last_trouble.as_deref(), Some(Trouble::Connect { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_bounded_in_bytes_too() {
    let mut config = config("a");
    config.buffer_bytes = 2 * u64::from(config.batch.frame_bytes_max);
    config.buffer_records = 1_000_000;
    let bytes_max = config.buffer_bytes;
    let (client, _) = IngestClient::connect_by(BlackHole, config).unwrap();
    let mut long = record(1);
    long.labels = "l".repeat(1_000).into();
    let mut count = 0;
    loop {
        long.labels = format!("{}{count}", "l".repeat(1_000)).into();
        match client.try_send(&long) {
            Ok(()) => count += 1,
            Err(ClientTrySendError::Full) => break,
            Err(error) => panic!("{error}"),
        }
        assert!(client.stats().bytes_held <= bytes_max + 2_048, "{count}");
    }
    assert!((100..140).contains(&count), "{count} records of a kilobyte in 128 KiB");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_tried_as_often_as_the_backoff_says() {
    let world = World::new().plan([], Plan::refusing());
    let (base, cap) = (Duration::from_secs(1), Duration::from_secs(4));
    let config = ClientConfig { backoff: Decorrelated { base, cap }, ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.send(&record(1)).await.unwrap();
    sleep(Duration::from_secs(600)).await;
    let tries = world.connections();
    assert!((150..=601).contains(&tries), "{tries} tries in 10 minutes");
    assert_eq!((client.stats().troubles, client.stats().connected), (tries, false));
    world.change(Plan::default());
    client.flush().await.unwrap();
    assert_eq!(world.stored(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_batch_waits_only_as_long_as_it_lingers() {
    let world = World::new();
    let linger = Some(Duration::from_millis(30));
    let config = ClientConfig { linger, ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.reached().await.unwrap();
    let began = Instant::now();
    client.send_batch(&records(0..13)).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let came: Vec<_> = world.came().iter().map(|(at, _, n)| (*at - began, *n)).collect();
    assert_eq!(came.iter().map(|(_, records)| *records).collect::<Vec<_>>(), [10, 3]);
    let waits_ms: Vec<_> = came.iter().map(|(after, _)| after.as_millis()).collect();
    assert!(waits_ms[0] <= 1 && (30..=32).contains(&waits_ms[1]), "{waits_ms:?}");
}

#[tokio::test(start_paused = true)]
async fn without_linger_only_whole_batches_and_flushes_are_sent() {
    let world = World::new();
    let config = ClientConfig { linger: None, ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.send_batch(&records(0..13)).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.stored().len(), 10);
    client.flush().await.unwrap();
    assert_eq!(world.stored().len(), 13);
}

#[tokio::test(start_paused = true)]
async fn closing_sends_the_rest_and_hands_back_what_is_not_acknowledged() {
    let world = World::new();
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..25)).await.unwrap();
    let summary = client.close(Duration::from_secs(5)).await;
    assert_eq!((summary.stats.records_acked, summary.unacked.len()), (25, 0));
    assert!(summary.error.is_none());
    assert_eq!(client.send(&record(1)).await, Err(ClientSendError::Ended(ClientError::Closed)));

    let (client, _) = IngestClient::connect_by(BlackHole, config("b")).unwrap();
    client.send_batch(&records(0..25)).await.unwrap();
    let began = Instant::now();
    let summary = client.close(Duration::from_secs(5)).await;
    assert_eq!(began.elapsed().as_secs(), 5);
    let back: Vec<_> = summary.unacked.into_iter().flat_map(|batch| batch.records).collect();
    assert_eq!(back, records(0..25));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_client_sends_no_part_of_a_batch() {
    let world = World::new();
    let config = ClientConfig { linger: None, ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.send_batch(&records(0..25)).await.unwrap();
    let summary = client.interrupt(Duration::from_secs(5)).await;
    assert_eq!(world.stored(), (0..20).collect::<Vec<_>>());
    assert_eq!((summary.unacked.len(), summary.unacked[0].seq), (1, None));
    assert_eq!(summary.unacked[0].records, records(20..25));
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_can_not_end_says_what_is_not_acknowledged() {
    let (client, _) = IngestClient::connect_by(BlackHole, config("a")).unwrap();
    let client = std::sync::Arc::new(client);
    client.send_batch(&records(0..25)).await.unwrap();
    let flushing = tokio::spawn({
        let client = client.clone();
        async move { client.flush().await }
    });
    sleep(Duration::from_secs(1)).await;
    assert!(!flushing.is_finished());
    client.close(Duration::ZERO).await;
    let error = flushing.await.unwrap().unwrap_err();
    assert!(matches!(error, FlushError::Ended { records: 25, .. }), "{error}");
}

#[test]
fn outside_of_a_runtime_there_is_no_client() {
    let made = IngestClient::connect("127.0.0.1:7070", config("a"));
    assert_eq!(made.unwrap_err(), ClientConfigError::NoRuntime);
}
