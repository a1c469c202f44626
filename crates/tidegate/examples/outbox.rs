//! Two destinations, one of them slow: each has a queue and a sender of its own.
//!
//! `cargo run -p tidegate --example outbox`

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::outbox::{
    Delivery, DestinationSlow, Failure, OutgoingConfig, OutgoingRequestManager, QueueConfig,
    Transport, Undelivered,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One connection for each batch: a line a message, and one byte as the answer to all of them.
struct Lines;

impl Transport for Lines {
    type Destination = SocketAddr;
    type Message = String;
    type Reply = ();
    type Error = io::Error;

    fn batch_max(&self) -> usize {
        32
    }

    async fn send(&self, destination: &SocketAddr, batch: &[String]) -> Delivery<(), io::Error> {
        let connect = TcpStream::connect(destination).await;
        // Nothing was sent yet: this may be tried again.
        let mut stream = connect.map_err(|error| Undelivered::all(Failure::Unreachable, error))?;
        let exchange = async {
            stream.write_all(batch.join("\n").as_bytes()).await?;
            stream.shutdown().await?;
            stream.read_u8().await
        };
        match exchange.await {
            Ok(_) => Ok(vec![(); batch.len()]),
            // From here on the destination may have it.
            Err(error) => Err(Undelivered::all(Failure::Lost, error)),
        }
    }
}

/// Counts lines, and takes its time for it.
async fn serve(delay: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = String::new();
            tokio::time::sleep(delay).await;
            if stream.read_to_string(&mut text).await.is_ok() {
                let _ = stream.write_u8(1).await;
            }
        }
    });
    Ok(address)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fast = serve(Duration::ZERO).await?;
    let slow = serve(Duration::from_millis(300)).await?;
    let queue = QueueConfig { primary_size: 100, overflow_size: 20, ..QueueConfig::default() };
    let config = OutgoingConfig { queue, ..OutgoingConfig::default() };
    let (manager, mut hand_back) = OutgoingRequestManager::new(Lines, config)?;

    let mut state = None;
    for number in 0..500 {
        let _ = manager.enqueue(&fast, MessageClass::Data, format!("to the fast one {number}"))?;
        let put =
            manager.enqueue(&slow, MessageClass::Data, format!("to the slow one {number}"))?;
        if state != Some(put.state) {
            println!("{number:>3}: the slow one is {}, wait {:?}", put.state, put.delay);
            state = Some(put.state);
        }
        // A producer that ignores the delay: watch the oldest go.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    match manager.enqueue(&slow, MessageClass::Dispatch, "a job".to_owned()) {
        Ok(_) => println!("the slow one takes a job"),
        Err(refused) => println!("{:?} comes back: {refused}", refused.message),
    }
    for stats in manager.stats() {
        let (queue, sender) = (&stats.queue, &stats.sender);
        let waiting = queue.primary_size + queue.overflow_size;
        println!(
            "{}: {} sent, {waiting} waiting, {} dropped, {}",
            stats.destination_port, sender.total_sent, queue.total_dropped, queue.state
        );
        if let Some(alert) = DestinationSlow::of(&stats) {
            println!("alert: {alert}");
        }
    }
    let unsent = manager.shutdown(Duration::from_secs(5)).await;
    println!("{} were not sent, {} failed", unsent.len(), manager.totals().handed_back);
    while let Some(failed) = hand_back.try_recv() {
        println!("{}: {}", failed.destination, failed.error);
    }
    Ok(())
}
