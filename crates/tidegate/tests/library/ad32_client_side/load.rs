//! AD-32, part 6, client side, 6, on real sockets.

use super::support::{Frame, Manner, Server, TcpTransport, config, manager, until};
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessageClass::{Control, Data, Dispatch, Telemetry};
use tidegate::outbox::{OutgoingConfig, QueueConfig};

const STALLED: usize = 6;
const LOSSY: usize = 2;
const FAST: usize = 2;
const MESSAGES: u64 = 60_000;
const BODY_BYTES: usize = 1024;

/// Sixty thousand messages of a kilobyte to ten datacentres, six of which do not answer and two of which lose
/// what they get. Every message is alive in one place: what the manager holds is counted by who still shares
/// its body, and no time enters into it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ad32_client_load_6_memory_bounded_under_sustained_cross_dc_traffic() {
    let queue = QueueConfig { control_size: 8, ..QueueConfig::default() };
    let hand_back_size = 100;
    let (manager, mut hand_back) = manager(
        TcpTransport::new(),
        OutgoingConfig {
            queue,
            hand_back_size,
            attempt_timeout: Duration::from_millis(200),
            ..config()
        },
    );
    let lossy =
        Manner::Lossy { delay: Duration::from_millis(2), closes_each: 7, swallows_each: 11 };
    let mut servers = Vec::new();
    for (count, manner) in [(STALLED, Manner::Stalled), (LOSSY, lossy), (FAST, Manner::Fast)] {
        for _ in 0..count {
            servers.push(Server::start(manner).await);
        }
    }
    // Each destination: primary, overflow, control lane, and the one that is being sent; and the hand-back.
    let each = queue.bound() + queue.control_size + 1;
    let bound = servers.len() * each + hand_back_size;

    let live = Arc::new(());
    let mut live_most = 0;
    let (mut accepted, mut dropped, mut refused) = (0_u64, 0_u64, 0_u64);
    let classes = [Data, Telemetry, Data, Dispatch, Telemetry, Data, Data, Control];
    for number in 0..MESSAGES {
        let server = &servers[number as usize % servers.len()];
        let class = classes[(number / servers.len() as u64) as usize % classes.len()];
        let frame = Frame { held: Some(Arc::clone(&live)), ..Frame::sized(number, BODY_BYTES) };
        match manager.enqueue(&server.address, class, frame) {
            Ok(put) => {
                accepted += 1;
                dropped += u64::from(put.dropped.is_some());
            }
            Err(_) => refused += 1,
        }
        // This test's own hold is one of them.
        live_most = live_most.max(Arc::strong_count(&live) - 1);
        if number % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    println!(
        "{accepted} taken, {dropped} dropped, {refused} refused; at most {live_most} of {bound} live, {} KiB",
        live_most * BODY_BYTES / 1024
    );
    assert!(live_most <= bound, "{live_most} messages were alive, the bounds add up to {bound}");
    assert!(live_most >= STALLED * queue.bound(), "the stalled ones were full: {live_most}");
    assert!(dropped > 0 && refused > 0, "the bounds were reached");
    for stats in manager.stats() {
        assert!(stats.queue.primary_size <= queue.primary_size, "{stats:?}");
        assert!(stats.queue.overflow_size <= queue.overflow_size, "{stats:?}");
    }

    // All is let go: what was accepted is delivered, was dropped, or came back. Nothing is left in memory.
    servers.iter().for_each(|server| server.set(Manner::Fast));
    until("all is sent", || {
        while hand_back.try_recv().is_some() {}
        manager
            .stats()
            .iter()
            .all(|stats| stats.queue.primary_size == 0 && stats.sender.in_flight == 0)
    })
    .await;
    let stats = manager.stats();
    let sum = |of: fn(&tidegate::outbox::DestinationQueueStats) -> u64| stats.iter().map(of).sum();
    let (sent, failed): (u64, u64) =
        (sum(|stats| stats.sender.total_sent), sum(|stats| stats.sender.total_failed));
    let queue_dropped: u64 = sum(|stats| stats.queue.total_dropped);
    assert_eq!(accepted + refused, MESSAGES);
    assert_eq!(accepted, sent + failed + queue_dropped, "nothing is lost");
    // Who hears of a failure finds it counted: so the last may come back a moment after it was.
    until("nothing is kept", || {
        while hand_back.try_recv().is_some() {}
        Arc::strong_count(&live) == 1
    })
    .await;
}
