//! Each record counts once, whatever happens to connections.

use super::support::{Answer, Pipes, Plan, World, config, paused, record, records};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::client::{ClientConfig, IngestClient, Numbering};
use tidegate::frame::RejectReason;
use tidegate::signal::BackpressureSignal;

const CLEAR: BackpressureSignal = BackpressureSignal::CLEAR;

/// A connection that is cut somewhere, or refused.
fn broken() -> impl Strategy<Value = Plan> {
    let cut = (0..3_000_usize, 0..1_500_usize, 0..100_u64);
    let cut = cut.prop_map(|(read_max, write_max, delay_ms)| {
        let delay = Duration::from_millis(delay_ms);
        Plan { read_max, write_max: write_max.max(1), delay, ..Plan::default() }
    });
    prop_oneof![6 => cut, 1 => Just(Plan::refusing()), 1 => Just(Plan::mute())]
}

/// Takes every third answer back: first a refusal for now, then it is taken.
fn moody() -> Plan {
    let turn = AtomicU64::new(0);
    Plan::answering(move |_| match turn.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => Answer::Reject(RejectReason::Overloaded, Some(20), CLEAR),
        _ => Answer::Ack(CLEAR),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn each_record_counts_once_whatever_is_cut(
        plans in prop::collection::vec(broken(), 0..12),
        count in 1..400_i64,
        numbering in prop_oneof![Just(Numbering::Continue), Just(Numbering::FromOne)],
        last_is_moody in any::<bool>(),
    ) {
        paused(async {
            let last = if last_is_moody { moody() } else { Plan::default() };
            let world = World::new().plan(plans, last);
            let config = ClientConfig { numbering, ..config("a") };
            let (client, _rejections) =
                IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
            client.send_batch(&records(0..count)).await.unwrap();
            client.flush().await.unwrap();
            let stats = client.stats();
            assert_eq!(world.stored(), (0..count).collect::<Vec<_>>());
            assert_eq!((stats.records_taken, stats.records_acked), (count as u64, count as u64));
            assert_eq!((stats.records_held, stats.records_rejected, world.too_far()), (0, 0, 0));
        });
    }

    /// The client dies at any time and another sends the same from the beginning, until one gets through.
    #[test]
    fn a_run_that_died_is_resumed_without_counting_twice(
        plans in prop::collection::vec(broken(), 0..6),
        deaths_ms in prop::collection::vec(0..400_u64, 0..6),
        count in 1..300_i64,
    ) {
        paused(async {
            let slow = Plan { delay: Duration::from_millis(5), ..Plan::default() };
            let world = World::new().plan(plans, slow);
            let config =
                || ClientConfig { numbering: Numbering::FromOne, linger: None, ..config("file/1") };
            for death_ms in deaths_ms {
                let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config()).unwrap();
                let all = records(0..count);
                let run = async { client.send_batch(&all).await };
                let _ = tokio::time::timeout(Duration::from_millis(death_ms), run).await;
            }
            let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config()).unwrap();
            client.send_batch(&records(0..count)).await.unwrap();
            client.flush().await.unwrap();
            let stats = client.stats();
            assert_eq!(world.stored(), (0..count).collect::<Vec<_>>());
            assert_eq!(stats.records_acked + stats.records_known, count as u64);
            assert_eq!(world.too_far(), 0);
        });
    }

    /// Clients of one name, one after the other, each with records of its own: none takes another's number.
    #[test]
    fn one_client_after_the_other_loses_nothing_that_was_acknowledged(
        plans in prop::collection::vec(broken(), 0..6),
        lives_ms in prop::collection::vec(0..400_u64, 1..6),
    ) {
        paused(async {
            let slow = Plan { delay: Duration::from_millis(5), ..Plan::default() };
            let world = World::new().plan(plans, slow);
            let mut acked = Vec::new();
            for (life, life_ms) in lives_ms.into_iter().enumerate() {
                let (client, _) =
                    IngestClient::connect_by(Pipes(world.clone()), config("worker")).unwrap();
                let first = life as i64 * 1_000;
                client.send_batch(&records(first..first + 150)).await.unwrap();
                let _ = tokio::time::timeout(Duration::from_millis(life_ms), client.flush()).await;
                let summary = client.close(Duration::ZERO).await;
                let unacked = summary.unacked.iter().flat_map(|batch| &batch.records);
                let unacked: BTreeSet<_> = unacked.map(|record| record.time_ns).collect();
                assert_eq!(summary.stats.records_acked + unacked.len() as u64, 150);
                acked.extend((first..first + 150).filter(|time_ns| !unacked.contains(time_ns)));
            }
            let stored = world.stored();
            assert!(stored.is_sorted_by(|a, b| a < b), "one was counted twice");
            let lost: Vec<_> = acked.iter().filter(|time| !stored.contains(time)).collect();
            assert!(lost.is_empty(), "acknowledged and not stored: {lost:?}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn many_tasks_may_send_at_once() {
    let world = World::new();
    let (client, _rejections) =
        IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    let client = std::sync::Arc::new(client);
    let senders = (0..20).map(|task| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                client.send(&record(task * 50 + number)).await.unwrap();
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    client.flush().await.unwrap();
    assert_eq!(world.stored(), (0..1_000).collect::<Vec<_>>());
}
