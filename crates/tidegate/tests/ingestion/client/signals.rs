//! What the server asks for is heeded, and nothing that it asks for lasts for ever.

use super::support::{Answer, Pipes, Plan, World, config, records, signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::client::{ClientConfig, IngestClient};
use tidegate::frame::Ack;
use tidegate::signal::BackpressureLevel::{self, Batch, None, Reject, Throttle};
use tidegate::signal::BackpressureSignal;
use tokio::time::sleep;

/// A server that asks for a level that the test can change.
fn asking(level: BackpressureLevel) -> (World, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(level.index()));
    let asking = asked.clone();
    let plan = Plan::answering(move |_| {
        Answer::Ack(signal(BackpressureLevel::ALL[asking.load(Ordering::Relaxed)]))
    });
    (World::new().plan([], plan), asked)
}

/// A client that has heard what the server asks for.
async fn warned(world: &World) -> IngestClient {
    let config = ClientConfig { linger: Some(Duration::from_millis(1)), ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.send_batch(&records(0..1)).await.unwrap();
    client.flush().await.unwrap();
    client
}

/// The times between two batches, in milliseconds.
fn gaps_ms(world: &World) -> Vec<u128> {
    let came = world.came();
    came.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_millis()).collect()
}

#[tokio::test(start_paused = true)]
async fn batches_keep_the_distance_that_was_asked_for() {
    for (level, gap_ms) in [(None, 0), (Throttle, 50), (Batch, 200), (Reject, 500)] {
        let (world, _) = asking(level);
        let client = warned(&world).await;
        assert_eq!(client.stats().signal.level, level);
        client.send_batch(&records(1..61)).await.unwrap();
        client.flush().await.unwrap();
        let gaps = gaps_ms(&world);
        assert_eq!(gaps.len(), 6, "{level}");
        let kept = |gap: &u128| (gap_ms..gap_ms + 8).contains(gap);
        assert!(gaps.iter().all(kept), "{level}: {gaps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_batch_small_updates_are_merged() {
    let (world, _) = asking(Batch);
    let client = warned(&world).await;
    for number in 1..=30 {
        client.send_batch(&records(number..number + 1)).await.unwrap();
        sleep(Duration::from_millis(30)).await;
    }
    client.flush().await.unwrap();
    let sizes: Vec<_> = world.came()[1..].iter().map(|(_, _, records)| *records).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 30);
    assert!(sizes.len() <= 6, "0.9 s at 0.2 s a batch: {sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn probes_at_reject_find_out_that_the_server_has_recovered() {
    let (world, asked) = asking(Reject);
    let client = warned(&world).await;
    client.send_batch(&records(1..151)).await.unwrap();
    sleep(Duration::from_millis(1_600)).await;
    assert_eq!(world.came().len(), 4, "one probe each half second");
    asked.store(None.index(), Ordering::Relaxed);
    // The next probe hears it, and the rest goes at once.
    sleep(Duration::from_millis(500)).await;
    assert_eq!(world.stored().len(), 151);
    assert_eq!(client.stats().signal, BackpressureSignal::CLEAR);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_silent_at_reject_stops_nobody() {
    // Answers the first batch with REJECT, and then acknowledges nothing for a while.
    let turn = AtomicUsize::new(0);
    let plan = Plan::answering(move |_| match turn.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::Ack(signal(Reject)),
        _ => Answer::Raw(bytes::Bytes::new()),
    });
    let world = World::new().plan([plan], Plan::default());
    let client = warned(&world).await;
    client.send_batch(&records(1..151)).await.unwrap();
    sleep(Duration::from_millis(4_900)).await;
    assert_eq!(world.came().len(), 10, "a probe each half second while the signal holds");
    sleep(Duration::from_millis(200)).await;
    assert_eq!(world.came().len(), 16, "it has expired");
    client.flush().await.unwrap();
    assert_eq!(world.stored(), (0..151).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_fall_of_the_level_ends_a_wait_at_once() {
    // The answer to the second batch clears what the first had asked for, 30 ms later.
    let turn = AtomicUsize::new(0);
    let plan = Plan {
        delay: Duration::from_millis(30),
        ..Plan::answering(move |_| match turn.fetch_add(1, Ordering::Relaxed) {
            0 => Answer::Ack(signal(Reject)),
            _ => Answer::Ack(signal(None)),
        })
    };
    let world = World::new().plan([], plan);
    let client = warned(&world).await;
    client.send_batch(&records(1..51)).await.unwrap();
    client.flush().await.unwrap();
    let gaps = gaps_ms(&world);
    assert!((500..510).contains(&gaps[0]), "the probe: {gaps:?}");
    assert!(gaps[1..].iter().sum::<u128>() <= 5 * 31, "and then no wait: {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn an_ack_of_nothing_can_bring_a_signal() {
    let quiet = Ack { seqs: Default::default(), signal: signal(Throttle) }.encode();
    let plan = Plan::answering(move |batch| {
        let ack = Ack { seqs: [batch.seq].into_iter().collect(), signal: signal(None) }.encode();
        Answer::Raw([ack, quiet.clone()].concat().into())
    });
    let world = World::new().plan([], plan);
    let client = warned(&world).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(client.stats().signal.level, Throttle);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asked_for_is_forgotten_with_its_connection() {
    let asks = |_: &_| Answer::Ack(signal(Reject));
    let ends_after_one = Plan { write_max: 300, ..Plan::answering(asks) };
    let world = World::new().plan([ends_after_one], Plan::default());
    let client = warned(&world).await;
    assert_eq!(client.stats().signal.level, Reject);
    // The probe is stored, and its answer cut off; over the next connection nobody asks for anything.
    client.send_batch(&records(1..151)).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!((client.stats().signal, world.connections()), (BackpressureSignal::CLEAR, 2));
    assert_eq!(world.stored().len(), 151);
}
