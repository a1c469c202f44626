//! Where numbers begin, and what that means for a client that comes back.

use super::support::{Pipes, Plan, World, config, records, reject};
use std::time::Duration;
use tidegate::client::{ClientConfig, ClientError, FlushError, IngestClient, Numbering};
use tidegate::frame::{FrameLimits, RejectReason, Welcome};
use tidegate::signal::BackpressureSignal;

fn from_one(sender: &str) -> ClientConfig {
    ClientConfig { numbering: Numbering::FromOne, linger: None, ..config(sender) }
}

#[tokio::test(start_paused = true)]
async fn the_same_sent_again_from_one_is_not_sent_at_all() {
    let world = World::new();
    for run in 0..3 {
        let (client, _) = IngestClient::connect_by(Pipes(world.clone()), from_one("f")).unwrap();
        client.send_batch(&records(0..1_005)).await.unwrap();
        let stats = client.close(Duration::from_secs(5)).await.stats;
        let expected = if run == 0 { (1_005, 0) } else { (0, 1_005) };
        assert_eq!((stats.records_acked, stats.records_known), expected, "run {run}");
    }
    assert_eq!((world.stored().len(), world.repeats()), (1_005, 0));
    let seqs: Vec<_> = world.came().iter().map(|(_, seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=101).collect::<Vec<_>>(), "numbered from 1 and sent once");
}

#[tokio::test(start_paused = true)]
async fn what_continues_begins_beyond_all_that_may_be_on_its_way() {
    let world = World::new();
    let mut lasts = Vec::new();
    for run in 0..3 {
        let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("w")).unwrap();
        // Taken before the server is reached, so numbered anew when it is.
        client.send_batch(&records(run * 100..run * 100 + 95)).await.unwrap();
        client.close(Duration::from_secs(5)).await;
        let first = world.came()[run as usize * 10].1;
        assert!(lasts.last().is_none_or(|last| first > last + 1_024), "{first} {lasts:?}");
        lasts.push(world.came().last().unwrap().1);
    }
    assert_eq!((world.stored().len(), world.repeats(), world.too_far()), (285, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_less_than_is_cut_is_a_final_error() {
    let limits = FrameLimits { batch_records_max: 5, ..FrameLimits::default() };
    let world = World::new().limits(limits, 1024);
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    let error = client.reached().await.unwrap_err();
    let ClientError::Limits { field, ours, theirs, .. } = &error else { panic!("{error}") };
    assert_eq!((*field, *ours, *theirs), ("batch_records_max", 10, 5));
    assert!(error.to_string().contains("cut them smaller"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_used_up_are_a_final_error() {
    let welcome = Welcome {
        version: 1,
        limits: FrameLimits::default(),
        batches_in_flight_max: 1,
        settled_low: u64::MAX - 5,
        seen: None,
        signal: BackpressureSignal::CLEAR,
    };
    let world = World::new().plan([], Plan::greeting(welcome.encode()));
    let (client, _) = IngestClient::connect_by(Pipes(world), config("a")).unwrap();
    assert_eq!(client.reached().await, Err(ClientError::NumbersUsed));
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_name_another_has_used_meanwhile_stops() {
    let ends_soon = Plan { read_max: 1_000, ..Plan::default() };
    let world = World::new().plan([ends_soon], Plan::default());
    let (older, _) = IngestClient::connect_by(Pipes(world.clone()), config("w")).unwrap();
    older.reached().await.unwrap();
    let (newer, _) = IngestClient::connect_by(Pipes(world.clone()), config("w")).unwrap();
    newer.send_batch(&records(0..10)).await.unwrap();
    newer.flush().await.unwrap();
    // Its connection ends within these, and the next welcome tells that its numbers are over.
    older.send_batch(&records(100..200)).await.unwrap();
    let error = older.flush().await.unwrap_err().to_string();
    assert!(error.contains("as w: give each a name of its own"), "{error}");
    newer.send_batch(&records(10..20)).await.unwrap();
    newer.flush().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_clients_of_one_name_do_not_push_each_other_out_for_ever() {
    let taken = reject(0, RejectReason::SenderTaken, Some(100), BackpressureSignal::CLEAR);
    let pushed_out = std::iter::repeat_n(Plan::greeting(taken), 2);
    let world = World::new().plan(pushed_out, Plan::default());
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("w")).unwrap();
    client.send_batch(&records(0..100)).await.unwrap();
    let FlushError::Ended { error, .. } = client.flush().await.unwrap_err() else { panic!() };
    assert!(matches!(error, ClientError::NameTaken { .. }), "{error}");
    assert_eq!(world.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_under_way_than_the_server_allows() {
    let slow = Plan { delay: Duration::from_millis(20), ..Plan::default() };
    let world = World::new().limits(FrameLimits::default(), 3).plan([], slow);
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..150)).await.unwrap();
    while client.stats().records_held > 0 {
        assert!(client.stats().batches_in_flight <= 3);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.stored().len(), 150);
}
