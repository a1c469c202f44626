//! A client that sends usage records over TCP, each counted once, to a pipeline on loopback.
//!
//! `cargo run -p tidegate --example ingest_client`

use bytes::BytesMut;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate::client::{ClientConfig, IngestClient};
use tidegate::pipeline::{Entrance, Pipeline, PipelineConfig, Protocol};
use tidegate::store::{FjallStore, Store, UsageBy, UsageQuery};
use tidegate::tariff::Tariffs;
use tidegate::usage::UsageRecord;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const RECORDS: u64 = 10_000;

/// Moves bytes between a socket and the pipeline: what a server does for each connection.
async fn serve(mut stream: TcpStream, entrance: Entrance) -> io::Result<()> {
    let connection = entrance.connect(stream.peer_addr()?, Protocol::Frames);
    let (mut input, mut output) = stream.split();
    let read = async {
        let mut buffer = BytesMut::with_capacity(64 * 1024);
        while input.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
            if entrance.push(&connection, buffer.split().freeze()).await.is_err() {
                break;
            }
        }
        entrance.end(&connection).await;
    };
    let write = async {
        // Acknowledgements follow once the records are durable; the last one ends the connection.
        while let Some(reply) = connection.next_reply().await {
            if output.write_all(&reply).await.is_err() {
                connection.cut();
            }
        }
    };
    tokio::join!(read, write);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tidegate-client-{}", std::process::id()));
    let store = Arc::new(FjallStore::open(&folder).await?);
    let tariffs = Arc::new(Tariffs::none());
    let (pipeline, front, back) =
        Pipeline::new(PipelineConfig::default(), Arc::clone(&store), tariffs)?;
    let entrance = pipeline.into_entrance();
    let stages = (tokio::spawn(front.run()), tokio::spawn(back.run()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        serve(stream, entrance).await
    });

    let config = ClientConfig::new("worker-17".parse()?);
    let (client, _rejections) = IngestClient::connect(address.to_string(), config)?;
    for number in 0..RECORDS {
        let record = UsageRecord {
            tenant: if number % 10 == 0 { "globex" } else { "acme" }.into(),
            meter: "tokens.output".into(),
            quantity: 512.into(),
            time_ns: 1_700_000_000_000_000_000,
            labels: "".into(),
        };
        // Waits while the server signals overload or too much is unacknowledged.
        client.send(&record).await?;
    }
    let summary = client.close(Duration::from_secs(10)).await;
    let stats = &summary.stats;
    println!("{} records acknowledged in {} batches", stats.records_acked, stats.batches_sent);

    server.await??;
    stages.0.await?;
    stages.1.await?;
    for row in store.usage(&UsageQuery::new(UsageBy::Both, 0, i64::MAX)).await? {
        let (tenant, meter) = (row.tenant.unwrap_or_default(), row.meter.unwrap_or_default());
        println!("{tenant:<8} {meter}  {:>8}", row.quantity.unwrap_or_default());
    }
    assert_eq!(stats.records_acked, RECORDS);
    drop(store);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
