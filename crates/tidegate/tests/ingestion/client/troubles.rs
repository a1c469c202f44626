//! Connections that break, stall or lie: each is told by its name, and another is made.

use super::support::{
    Answer, BlackHole, Pipes, Plan, World, config, paused, record, records, reject,
};
use bytes::Bytes;
use proptest::prelude::*;
use std::time::Duration;
use tidegate::client::{ClientError, ClientSendError, FlushError, IngestClient, Trouble};
use tidegate::frame::{Ack, RejectReason};
use tidegate::signal::BackpressureSignal;
use tokio::time::{Instant, sleep};

const CLEAR: BackpressureSignal = BackpressureSignal::CLEAR;

/// Sends to a server whose first connection follows this plan, and gives the trouble that there was.
async fn trouble(first: Plan) -> (String, World) {
    let world = World::new().plan([first], Plan::default());
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..100)).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(world.stored(), (0..100).collect::<Vec<_>>());
    let stats = client.stats();
    assert_eq!((stats.troubles, stats.connected), (1, true));
    (stats.last_trouble.unwrap().to_string(), world)
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_given_up() {
    let began = Instant::now();
    let (trouble, world) = trouble(Plan::mute()).await;
    assert_eq!(trouble, "the test's server was silent for 30s with batches under way");
    assert!((30..32).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    assert_eq!(world.repeats(), 0, "nothing had been stored over the mute one");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_greets_is_given_up() {
    let (trouble, _) = trouble(Plan::greeting("")).await;
    assert!(trouble.contains("was silent for 30s"), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_kept() {
    let world = World::new();
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    for number in 0..3 {
        client.send(&record(number)).await.unwrap();
        client.flush().await.unwrap();
        sleep(Duration::from_secs(3_000)).await;
    }
    assert_eq!((client.stats().troubles, world.connections()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_slowly_is_not_given_up() {
    let slow = Plan { delay: Duration::from_secs(20), ..Plan::default() };
    let world = World::new().plan([], slow);
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..100)).await.unwrap();
    client.flush().await.unwrap();
    let stats = client.stats();
    assert_eq!((stats.troubles, stats.records_resent), (0, 0));
    assert!(stats.latency.max >= Duration::from_secs(199), "{:?}", stats.latency);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_is_told_apart_from_one_cut_within_a_frame() {
    let (ended, _) = trouble(Plan { read_max: 500, ..Plan::default() }).await;
    assert_eq!(ended, "the test's server closed the connection");
    let (cut, world) = trouble(Plan { write_max: 190, ..Plan::default() }).await;
    assert_eq!(cut, "the test's server closed the connection within a frame");
    assert_eq!(world.repeats(), 0, "the second welcome said what was stored");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_refused_is_tried_again() {
    let taken = reject(0, RejectReason::SenderTaken, Some(1_000), CLEAR);
    let (refused, _) = trouble(Plan::greeting(taken)).await;
    assert!(refused.contains("refused the connection: sender_taken: as planned"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_what_was_never_sent_is_not_believed() {
    let lie = |seq| Ack { seqs: [seq].into_iter().collect(), signal: CLEAR }.encode();
    let (told, _) = trouble(Plan::answering(move |_| Answer::Raw(lie(1 << 62)))).await;
    assert!(told.contains("answered batch 4611686018427387904, which was never sent"), "{told}");
    let no = |seq| reject(seq, RejectReason::Malformed, None, CLEAR);
    let (told, _) = trouble(Plan::answering(move |_| Answer::Raw(no(1 << 62)))).await;
    assert!(told.contains("which was never sent"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_second_greeting_is_no_answer() {
    let hello = tidegate::frame::Hello::new("a".parse().unwrap(), "x").encode();
    let (told, _) = trouble(Plan::answering(move |_| Answer::Raw(hello.clone()))).await;
    assert!(told.contains("a frame of kind hello: expected ack"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn another_version_of_the_protocol_is_a_final_error() {
    let rejected = reject(0, RejectReason::UnknownVersion, None, CLEAR);
    let spoken = Bytes::from_static(&[0, 0, 0, 4, 9, 1, 0, 0]);
    for greeting in [rejected, spoken] {
        let world = World::new().plan([], Plan::greeting(greeting));
        let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
        client.send_batch(&records(0..25)).await.unwrap();
        let error = client.flush().await.unwrap_err();
        let FlushError::Ended { records: 25, error } = error else { panic!("{error}") };
        assert!(error.to_string().contains("update the older side"), "{error}");
        assert!(matches!(error, ClientError::Version { .. }));
        assert_eq!(client.send(&record(1)).await, Err(ClientSendError::Ended(error.clone())));
        assert_eq!(world.connections(), 1, "it is not tried again");

        let summary = client.close(Duration::from_secs(60)).await;
        assert_eq!(summary.error, Some(error));
        let back: Vec<_> = summary.unacked.into_iter().flat_map(|batch| batch.records).collect();
        assert_eq!(back, records(0..25), "nothing is lost with it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_can_not_be_made_is_not_waited_for() {
    let (client, _) = IngestClient::connect_by(BlackHole, config("a")).unwrap();
    client.send(&record(1)).await.unwrap();
    sleep(Duration::from_secs(6)).await;
    let trouble = client.stats().last_trouble.unwrap();
    let Trouble::Connect { server, error } = &*trouble else { panic!("{trouble}") };
    assert_eq!((server.as_str(), error.kind()), ("nowhere", std::io::ErrorKind::TimedOut));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Garbage for a greeting, or for an answer: another connection is made, or the client ends and says why;
    /// nothing panics, and nothing that was taken is lost.
    #[test]
    fn garbage_is_survived(
        garbage in prop::collection::vec(any::<u8>(), 1..64),
        as_greeting in any::<bool>(),
    ) {
        paused(async {
            let garbage = Bytes::from(garbage);
            let first = match as_greeting {
                true => Plan::greeting(garbage),
                false => Plan::answering(move |_| Answer::Raw(garbage.clone())),
            };
            let world = World::new().plan([first], Plan::default());
            let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
            client.send_batch(&records(0..50)).await.unwrap();
            match client.flush().await {
                Ok(()) => assert_eq!(world.stored().len(), 50),
                Err(error) => assert!(error.to_string().contains("version"), "{error}"),
            }
            let summary = client.close(Duration::ZERO).await;
            let back: usize = summary.unacked.iter().map(|batch| batch.records.len()).sum();
            assert_eq!(summary.stats.records_acked + back as u64, 50);
        });
    }
}
