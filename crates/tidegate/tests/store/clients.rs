//! Usage by the client whose token delivered it, on both stores.

use crate::place::{Place, run};
use crate::records::{MINUTE_NS, NOW_NS, all, append, batch, record, usage};
use std::sync::Arc;
use tidegate::store::{Appended, BatchRefusal, PricedBatch, Store as _, UsageBy, UsageQuery};

/// One record of a tenant, sent by a client; without a token if its name is empty.
fn of_client(client: &str, seq: u64, tenant: &str) -> PricedBatch {
    let records = vec![record(tenant, "tokens", "1", "0.5")];
    let source = match client {
        "" => Arc::from("sender/s"),
        client => Arc::from(format!("client/{client}")),
    };
    PricedBatch { source, ..batch(&format!("s-{client}"), seq, records) }
}

async fn rows(store: &tidegate::store::AnyStore, query: &UsageQuery) -> Vec<String> {
    let row = |row: &tidegate::store::UsageRow| {
        let names = [&row.client, &row.tenant].map(|name| name.as_deref().unwrap_or("-"));
        format!("{} {} {}", names[0], names[1], row.records)
    };
    usage(store, query).await.iter().map(row).collect()
}

async fn are_by_client(store: &tidegate::store::AnyStore) {
    let by_client = all(UsageBy::Client);
    assert_eq!(rows(store, &by_client).await, [" - 1", "a - 3", "b - 1"]);
    let of_acme = by_client.only(Some("acme"), None);
    assert_eq!(rows(store, &of_acme).await, [" - 1", "a - 2", "b - 1"]);
    // Over all tenants: with a filter, by pages, and of a meter that nobody has.
    let by = |by: UsageBy| all(by).of_client(Some("a"));
    assert_eq!(rows(store, &by(UsageBy::Client)).await, ["a - 3"]);
    assert_eq!(rows(store, &by(UsageBy::Meter)).await, ["- - 3"]);
    assert_eq!(rows(store, &all(UsageBy::Client).page(None, 1)).await, [" - 1", "a - 3", "b - 1"]);
    let of_meter = |meter| all(UsageBy::Client).only(None, Some(meter)).page(None, 1);
    assert_eq!(rows(store, &of_meter("tokens")).await, [" - 1", "a - 3", "b - 1"]);
    assert_eq!(rows(store, &of_meter("none")).await, [""; 0]);
    assert_eq!(rows(store, &of_meter("tokenz")).await, [""; 0]);
    let of = |client: &str| all(UsageBy::Tenant).of_client(Some(client));
    assert_eq!(rows(store, &of("a")).await, ["- acme 2", "- zeta 1"]);
    assert_eq!(rows(store, &of("")).await, ["- acme 1"]);
    assert_eq!(rows(store, &of("x")).await, [""; 0]);
    // Tiers and other rows are of all clients.
    assert_eq!(rows(store, &all(UsageBy::Tenant)).await, ["- acme 4", "- zeta 1"]);
    let used = store.used("acme", "tokens", i64::MIN, i64::MAX).await.unwrap();
    assert_eq!(used.to_string(), "4");
}

async fn usage_is_by_client_and_of_one_client(place: Place) {
    let store = place.open().await;
    let batches = vec![
        of_client("b", 1, "acme"),
        of_client("a", 1, "acme"),
        of_client("", 1, "acme"),
        of_client("a", 2, "zeta"),
        of_client("a", 3, "acme"),
    ];
    assert_eq!(append(&store, batches).await, [Appended::New; 5]);
    are_by_client(&store).await;
    // Writes what a folder has in memory.
    store.retain(MINUTE_NS).await.unwrap();
    are_by_client(&store).await;
    store.close().await;
    let store = place.open().await;
    assert_eq!(rows(&store, &all(UsageBy::Client)).await, [" - 1", "a - 3", "b - 1"]);
    are_by_client(&store).await;
    // Totals go with the records that they add up.
    store.retain(NOW_NS + 2 * 1_440 * MINUTE_NS).await.unwrap();
    for by in [UsageBy::Client, UsageBy::Meter] {
        assert_eq!(rows(&store, &all(by)).await, [""; 0]);
    }
    store.close().await;
}

/// The bound of a sum is that of all clients together.
async fn a_sum_of_several_clients_is_bounded_too(place: Place) {
    let store = place.open().await;
    let large = |client: &str, seq| PricedBatch {
        records: vec![record("acme", "tokens", "50000000000000000000000000000", "0")],
        ..of_client(client, seq, "acme")
    };
    assert_eq!(append(&store, vec![large("a", 1)]).await, [Appended::New]);
    let refused = Appended::Refused(BatchRefusal::SumOverflow);
    assert_eq!(append(&store, vec![large("b", 1)]).await, [refused]);
    store.close().await;
    let store = place.open().await;
    assert_eq!(append(&store, vec![large("b", 1)]).await, [refused]);
    store.close().await;
}

#[test]
fn a_folder_sums_up_by_client() {
    run(usage_is_by_client_and_of_one_client(Place::folder()));
    run(a_sum_of_several_clients_is_bounded_too(Place::folder()));
}

#[test]
fn postgres_sums_up_by_client() {
    run(usage_is_by_client_and_of_one_client(Place::postgres()));
    run(a_sum_of_several_clients_is_bounded_too(Place::postgres()));
}
