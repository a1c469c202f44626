//! A channel between a fast producer and a slow consumer, whose window is resized while messages are queued.
//!
//! `cargo run -p tidegate --example windowed_channel`

use std::time::Duration;
use tidegate::channel::{Weigh, Weight, Window, windowed};

/// A message that counts as one item and as its own bytes.
struct Text(String);

impl Weigh for Text {
    fn weight(&self) -> Weight {
        Weight::one(self.0.len() as u32)
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() {
    let (sender, mut receiver) = windowed(Window { items: 64, bytes: 4_096 });
    let gauge = receiver.gauge();
    let producer = tokio::spawn(async move {
        for number in 0..1_000 {
            // Waits while the window is full; the receiver is gone when this fails.
            if sender.send(Text(format!("message {number}"))).await.is_err() {
                return;
            }
        }
    });

    let (mut batch, mut received, mut batches) = (Vec::new(), 0, 0);
    // A lease holds the credits of a batch until the batch is processed.
    while let Some(lease) = receiver.lease_many(&mut batch, 16).await {
        received += batch.len();
        batch.clear();
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(lease);
        batches += 1;
        if batches % 10 == 0 {
            let now = gauge.snapshot();
            println!(
                "{received:>4} received: window {:>3}, queued {:>3} ({} bytes), may still send {}",
                now.granted.items, now.queued.items, now.queued.bytes, now.balance.items
            );
            // Takes effect at once: a smaller window admits nothing until the excess is received.
            let items = if now.granted.items == 64 { 16 } else { 64 };
            gauge.resize(Window { items, ..now.granted });
        }
    }
    let waits = gauge.snapshot().waits_total;
    println!("{received} received in order; the producer waited {waits} times");
    assert!(producer.await.is_ok(), "the producer ends before the channel does");
    assert_eq!(received, 1_000);
}
