//! The ingestion pipeline without a socket: line protocol in, priced usage in a folder, a bill out.
//!
//! `cargo run -p tidegate --example pipeline`

use std::error::Error;
use std::sync::Arc;
use tidegate::pipeline::{Pipeline, PipelineConfig, Protocol};
use tidegate::store::{FjallStore, Store, UsageBy, UsageQuery};
use tidegate::tariff::TariffFile;

const TARIFFS: &str = r#"
[[tariff]]
name = "tokens"
tenants = "*"
meter = "tokens.*"
per = 1_000_000
price = "0.15"
"#;

/// Influx line protocol: the meter is `measurement.field`, the tenant a tag.
const LINES: &str = "\
tokens,tenant=acme input=800000i,output=200000i
tokens,tenant=globex output=3000000i
tokens,tenant=acme output=\"no number\"
";

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tidegate-pipeline-{}", std::process::id()));
    let store = Arc::new(FjallStore::open(&folder).await?);
    let tariffs = TariffFile::parse("tariffs", TARIFFS)?;
    let config = PipelineConfig::default();
    let (pipeline, front, back) =
        Pipeline::new(config, Arc::clone(&store), Arc::clone(tariffs.tariffs()))?;
    let view = pipeline.view();
    let stages = (tokio::spawn(front.run()), tokio::spawn(back.run()));

    // A server does this for each connection, with the bytes that it reads.
    let entrance = pipeline.into_entrance();
    let connection = entrance.connect("127.0.0.1:9".parse()?, Protocol::Lines);
    entrance.push(&connection, LINES.into()).await?;
    entrance.end(&connection).await;

    // Without an entrance the pipeline stores what it has, and ends.
    drop(entrance);
    stages.0.await?;
    stages.1.await?;

    let counts = view.counts();
    println!("{} lines, {} records stored", counts.lines, counts.records_stored);
    for row in store.usage(&UsageQuery::new(UsageBy::Tenant, 0, i64::MAX)).await? {
        let tenant = row.tenant.unwrap_or_default();
        println!("{tenant:<8} {:>2} records  {:>6} {}", row.records, row.amount, row.currency);
    }
    assert_eq!(counts.records_stored, 3, "a field that is no number is skipped");
    drop(store);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
