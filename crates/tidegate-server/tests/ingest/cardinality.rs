//! A sender of ever new tenants, beside one that behaves.

use crate::http::eventually;
use crate::support::{Peer, Said, TestIngest, batch, batch_of, lines_peer, record};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::MessageClass;
use tidegate::frame::RejectReason;
use tokio::io::AsyncWriteExt as _;

/// Acks of the other sender that are timed in a round, and rounds, of which the median counts: ten acks are above
/// the p99 of a round, and one batch of the attacker more or less beside them decides it.
const COUNT: usize = 1_000;
const ROUNDS: usize = 5;

/// Batches of an attacker that are unanswered at once.
const UNDER_WAY: u64 = 16;

/// Records of new tenants in each of them.
const NEW_TENANTS: usize = 1_000;

/// Sends batches of new tenants, as many as it is let, until it is told to stop.
async fn attack(
    address: std::net::SocketAddr,
    name: String,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
) {
    let mut peer = Peer::named(address, &name).await;
    let (mut next, mut answered) = (1, 0);
    while !stop.load(Ordering::Relaxed) {
        while next - answered <= UNDER_WAY {
            let records: Vec<_> =
                (0..NEW_TENANTS).map(|n| record(&format!("{name}-{next}-{n}"), 1)).collect();
            peer.send(&batch_of(MessageClass::Data, (next, answered), &records)).await;
            next += 1;
        }
        match peer.next().await {
            Some(Said::Ack(ack)) => {
                let ranges = ack.seqs.ranges().iter();
                answered += ranges.map(|range| range.end() - range.start() + 1).sum::<u64>();
            }
            Some(Said::Reject(reject)) => {
                let reasons = [RejectReason::TooManySeries, RejectReason::Overloaded];
                assert!(reasons.contains(&reject.reason), "{reject:?}");
                answered += 1;
            }
            other => panic!("{other:?}"),
        }
        sent.store(answered, Ordering::Relaxed);
    }
}

/// Times from send to ack of single batches, one after the other.
async fn ack_times(peer: &mut Peer, seq: &mut u64, count: usize) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        peer.send(&batch("victim", (*seq, *seq - 1), 2)).await;
        peer.acked(*seq).await;
        times.push(started.elapsed());
        *seq += 1;
    }
    times.sort();
    times
}

/// Attacks a node, and times the acks of another sender of it: at least [`COUNT`], until the attack has come so
/// far. The acks of a node without an attacker are timed in turn with them: a busy machine or disk delays both.
async fn assert_others_hardly_notice(ingest: &TestIngest, is_over: impl Fn(u64) -> bool) {
    let control = TestIngest::start();
    let mut victim = Peer::named(ingest.frames, "victim").await;
    let mut other = Peer::named(control.frames, "victim").await;
    let (mut seq, mut other_seq) = (1, 1);
    ack_times(&mut victim, &mut seq, 10).await;
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (told, counted) = (Arc::clone(&stop), Arc::clone(&sent));
    let attacking = tokio::spawn(attack(ingest.frames, "x".to_owned(), told, counted));
    let mut ratios = [Vec::new(), Vec::new()];
    while ratios[0].len() < ROUNDS || !is_over(sent.load(Ordering::Relaxed)) {
        let (mut beside, mut alone) = (Vec::new(), Vec::new());
        for _ in 0..COUNT {
            beside.extend(ack_times(&mut victim, &mut seq, 1).await);
            alone.extend(ack_times(&mut other, &mut other_seq, 1).await);
        }
        beside.sort();
        alone.sort();
        for (ratios, at) in ratios.iter_mut().zip([50, 99]) {
            let [beside, alone] = [&beside, &alone].map(|times| times[times.len() * at / 100]);
            ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
        }
    }
    let batches = sent.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    for (name, mut ratios) in ["median", "p99"].into_iter().zip(ratios) {
        ratios.sort_by(f64::total_cmp);
        eprintln!("{name} over that alone, beside {batches} batches of new tenants: {ratios:.2?}");
        assert!(ratios[ratios.len() / 2] <= 2.0, "{name}: {ratios:.2?}");
    }
    attacking.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_of_ever_new_tenants_is_refused_and_others_hardly_notice() {
    let ingest = TestIngest::start_with(|config| config.series_per_sender_max = 3_000);
    let is_refused = |_| ingest.rejected("too_many_series") > 0;
    assert_others_hardly_notice(&ingest, is_refused).await;
    let rows = ingest.usage().await;
    assert_eq!(rows.len(), 1 + 3 * NEW_TENANTS, "of each batch all or nothing");
    // A restart does not forget it, and existing series are taken.
    let ingest = ingest.restart().await;
    let mut again = Peer::named(ingest.frames, "x").await;
    let known: Vec<_> = (0..9).map(|n| record(&format!("x-1-{n}"), 1)).collect();
    let next = 1 << 40;
    again.send(&batch_of(MessageClass::Data, (next, next - 1), &known)).await;
    again.acked(next).await;
    again.send(&batch("x-new", (next + 1, next), 1)).await;
    let reject = again.reject().await;
    assert_eq!(reject.reason, RejectReason::TooManySeries);
    assert!(reject.message.contains("series_per_sender_max"), "{}", reject.message);
}

/// The same at the default bound, which the attacker does not reach.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_fills_the_default_bound_hardly_delays_others() {
    let ingest = TestIngest::start();
    assert_others_hardly_notice(&ingest, |batches| batches >= 3).await;
    assert_eq!(ingest.rejected("too_many_series"), 0, "the bound is far");
}

#[tokio::test]
async fn of_lines_only_the_records_of_new_series_are_refused() {
    let ingest = TestIngest::start_with(|config| config.series_max = 2);
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(b"m,tenant=a value=1 1\nm,tenant=b value=1 1\n").await.unwrap();
    eventually("they are stored", || ingest.stats().counts.records_stored == 2).await;
    lines
        .write_all(b"m,tenant=a value=1 1\nm,tenant=c value=1 1\nm,tenant=b value=1 1\n")
        .await
        .unwrap();
    eventually("the others are stored", || ingest.stats().counts.records_stored == 4).await;
    eventually("it is counted", || ingest.rejected("too_many_series") == 1).await;
    assert_eq!(ingest.stored("c").await, 0);
}
