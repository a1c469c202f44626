//! What the server answers, and what becomes of the batch.

use super::support::{Answer, Pipes, Plan, World, config, record, records, signal};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate::client::{
    ClientConfig, ClientSendError, FlushError, IngestClient, Numbering, RejectCause,
};
use tidegate::frame::{Ack, RejectReason};
use tidegate::signal::{BackpressureLevel, BackpressureSignal};
use tidegate::{MessageClass, client::ClientTrySendError};

const CLEAR: BackpressureSignal = BackpressureSignal::CLEAR;

fn refuse_third(batch: &tidegate::frame::Batch) -> Answer {
    match batch.records[0].time_ns {
        20 => Answer::Reject(RejectReason::Malformed, None, CLEAR),
        _ => Answer::Ack(CLEAR),
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_for_good_comes_back_with_its_records() {
    let world = World::new().plan([], Plan::answering(refuse_third));
    let (client, mut rejections) =
        IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..100)).await.unwrap();
    assert_eq!(client.flush().await, Err(FlushError::Rejected { records: 10 }));
    assert_eq!(client.flush().await, Ok(()), "it was told once");

    let rejected = rejections.recv().await.unwrap();
    assert_eq!(rejected.records, records(20..30));
    let RejectCause::Refused { reason, message } = rejected.cause else { panic!() };
    assert_eq!((reason, message.as_str()), (RejectReason::Malformed, "as planned"));

    let stats = client.stats();
    assert_eq!((stats.records_acked, stats.records_rejected), (90, 10));
    let rejects: Vec<_> = stats.rejects.iter().collect();
    assert_eq!(rejects, [(RejectReason::Malformed, 1)]);
    assert_eq!(world.stored().len(), 90);

    // The number that was given up is settled with the next batch, so the server's window moves on.
    client.send_batch(&records(100..120)).await.unwrap();
    client.flush().await.unwrap();
    drop(client);
    assert!(rejections.recv().await.is_none(), "the client has ended");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_batches_behind_one_that_was_given_up_are_not_too_far() {
    let world = World::new().plan([], Plan::answering(refuse_third));
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..15_000)).await.unwrap();
    assert_eq!(client.flush().await, Err(FlushError::Rejected { records: 10 }));
    assert_eq!((world.stored().len(), world.too_far()), (14_990, 0));
    assert_eq!(client.stats().rejections_lost, 1, "nobody reads them");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_refused_for_now_is_sent_again_when_the_server_says() {
    let first = AtomicBool::new(true);
    let plan = Plan::answering(move |_| match first.swap(false, Ordering::Relaxed) {
        true => Answer::Reject(RejectReason::StoreUnavailable, Some(3_000), CLEAR),
        false => Answer::Ack(CLEAR),
    });
    let world = World::new().plan([], plan);
    let (client, mut rejections) =
        IngestClient::connect_by(Pipes(world.clone()), config("a")).unwrap();
    client.send_batch(&records(0..20)).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(world.stored(), (0..20).collect::<Vec<_>>());

    let came = world.came();
    let again = came.last().unwrap();
    assert_eq!((came.len(), again.1), (3, came[0].1), "the same number: {came:?}");
    let waited = again.0 - came[0].0;
    assert!((3_000..3_760).contains(&waited.as_millis()), "{waited:?}");
    let stats = client.stats();
    assert_eq!((stats.records_resent, stats.records_rejected), (10, 0));
    assert_eq!(stats.rejects.of(RejectReason::StoreUnavailable), 1);
    assert!(rejections.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_ack_may_name_many_batches_and_any_of_them_twice() {
    // Answers nothing to odd batches, and both to even ones.
    let plan = Plan::answering(|batch| {
        let seqs = [batch.seq - 1, batch.seq].into_iter().filter(|_| batch.seq.is_multiple_of(2));
        Answer::Raw(Ack { seqs: seqs.collect(), signal: CLEAR }.encode())
    });
    let world = World::new().plan([], plan);
    let numbering = Numbering::FromOne;
    let config = ClientConfig { linger: None, numbering, ..config("a") };
    let (client, _) = IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
    client.send_batch(&records(0..200)).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!((client.stats().records_acked, client.stats().troubles), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn telemetry_is_spared_at_reject_and_handed_back_while_data_waits() {
    for class in [MessageClass::Telemetry, MessageClass::Data] {
        // The first batch is answered with REJECT, all others with silence.
        let first = AtomicBool::new(true);
        let plan = Plan::answering(move |_| match first.swap(false, Ordering::Relaxed) {
            true => Answer::Ack(signal(BackpressureLevel::Reject)),
            false => Answer::Raw(Bytes::new()),
        });
        let world = World::new().plan([], plan);
        let config = ClientConfig { class, ..config("a") };
        let (client, mut rejections) =
            IngestClient::connect_by(Pipes(world.clone()), config).unwrap();
        client.send_batch(&records(0..10)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.send_batch(&records(10..105)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;

        let spared: Vec<_> = std::iter::from_fn(|| rejections.try_recv()).collect();
        let stats = client.stats();
        match class {
            MessageClass::Telemetry => {
                assert!(spared.iter().all(|batch| batch.cause == RejectCause::Spared));
                let back = spared.iter().flat_map(|batch| &batch.records);
                assert_eq!(
                    back.map(|r| r.time_ns).collect::<Vec<_>>(),
                    (10..100).collect::<Vec<_>>()
                );
                assert_eq!((stats.records_rejected, stats.records_held), (90, 5));
            }
            _ => assert_eq!((spared.len(), stats.records_held), (0, 95), "data is never dropped"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_no_server_takes_is_refused_at_once() {
    let (client, _) = IngestClient::connect_by(Pipes(World::new()), config("a")).unwrap();
    let mut wrong = record(1);
    wrong.tenant = "".into();
    assert!(matches!(client.send(&wrong).await, Err(ClientSendError::Refused(_))));
    assert!(matches!(client.try_send(&wrong), Err(ClientTrySendError::NotSent(_))));
    let error = client.send_batch(&[record(0), record(1), wrong, record(2)]).await.unwrap_err();
    assert_eq!(error.taken, 2);
    assert!(error.to_string().starts_with("2 records were taken, and then: "), "{error}");
    client.flush().await.unwrap();
    assert_eq!(client.stats().records_acked, 2);
}
