use crate::model;
use crate::place::{Place, run};
use crate::records::*;
use rust_decimal::Decimal;
use std::sync::Arc;
use tidegate::sequence::{SEQ_WINDOW, SeqStatus};
use tidegate::store::{
    AnyStore, Appended, BatchRefusal, NAME_BYTES_MAX, PricedBatch, SeriesLimits, Store, UsageBy,
    UsageQuery,
};
use tidegate::usage::{Fallback, PricedRecord};

/// Each case by its name, once on a folder and once on PostgreSQL.
macro_rules! on_every_store {
    ($($case:ident,)*) => {
        mod on_a_folder {
            $(#[test] fn $case() { super::run(super::$case(super::Place::folder())); })*
        }
        mod on_postgres {
            $(#[test] fn $case() { super::run(super::$case(super::Place::postgres())); })*
        }
    };
}

on_every_store! {
    what_was_appended_is_there_after_a_reopen,
    records_come_back_as_they_were,
    a_repeat_counts_once,
    a_repeat_in_the_same_call_counts_once,
    numbers_may_come_out_of_order,
    settled_numbers_are_not_taken_again,
    a_number_too_far_ahead_is_refused_alone,
    a_name_too_long_is_refused_alone,
    senders_do_not_mix,
    a_name_belongs_to_the_client_that_first_used_it,
    a_batch_without_an_origin_always_counts,
    nothing_is_a_batch_too,
    usage_is_by_tenant_by_meter_or_by_both,
    usage_can_be_of_one_tenant_or_meter,
    times_are_by_the_minute,
    long_times_are_summed_up_too,
    currencies_are_not_added_up,
    extreme_numbers_are_exact,
    a_sum_beyond_a_decimal_number_is_refused_and_never_saturates,
    series_are_bounded_by_source_and_in_all_also_after_a_restart,
    names_may_be_of_any_letters,
    large_batches_are_stored_whole,
    reads_go_on_while_others_append,
    appends_of_many_at_once_all_count,
    a_scan_that_nobody_reads_harms_nobody,
    what_is_too_old_can_be_deleted,
    any_history_is_as_the_model_says,
}

async fn reopened(place: &Place, store: AnyStore) -> AnyStore {
    store.close().await;
    place.open().await
}

async fn what_was_appended_is_there_after_a_reopen(place: Place) {
    let store = place.open().await;
    assert_eq!(append(&store, vec![one("a", 1), one("a", 2)]).await, [Appended::New; 2]);
    let before = usage(&store, &all(UsageBy::Both)).await;
    let store = reopened(&place, store).await;
    assert_eq!(usage(&store, &all(UsageBy::Both)).await, before);
    assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (2, 2));
    assert_eq!(
        append(&store, vec![one("a", 2), one("a", 3)]).await,
        [Appended::Repeat, Appended::New]
    );
    assert_eq!(count(&store).await, 3);
}

async fn records_come_back_as_they_were(place: Place) {
    let store = place.open().await;
    let mut records: Vec<_> = Fallback::ALL
        .into_iter()
        .map(Some)
        .chain([None])
        .enumerate()
        .map(|(number, fallback)| {
            let mut priced = record("acme", "tokens", "12.50", "-0.0001");
            priced.record.time_ns = NOW_NS - number as i64 * 90_000_000_000_000;
            priced.charge.fallback = fallback;
            priced
        })
        .collect();
    append(&store, vec![batch("a", 1, records.clone())]).await;
    let store = reopened(&place, store).await;
    sort(&mut records);
    assert_eq!(scan(&store, i64::MIN, i64::MAX).await, records);
    let (first, last) = (records[1].record.time_ns, records[3].record.time_ns);
    assert_eq!(scan(&store, first, last).await, records[1..3]);
    assert_eq!(scan(&store, last + 1, last + 1).await, []);
}

async fn a_repeat_counts_once(place: Place) {
    let store = place.open().await;
    assert_eq!(append(&store, vec![one("a", 1)]).await, [Appended::New]);
    for _ in 0..3 {
        assert_eq!(append(&store, vec![one("a", 1)]).await, [Appended::Repeat]);
    }
    assert_eq!(count(&store).await, 1);
}

async fn a_repeat_in_the_same_call_counts_once(place: Place) {
    let store = place.open().await;
    let outcomes = append(&store, vec![one("a", 1), one("b", 1), one("a", 1)]).await;
    assert_eq!(outcomes, [Appended::New, Appended::New, Appended::Repeat]);
    assert_eq!(count(&store).await, 2);
}

async fn numbers_may_come_out_of_order(place: Place) {
    let store = place.open().await;
    for seq in [5, 3, 1, 4] {
        assert_eq!(append(&store, vec![one("a", seq)]).await, [Appended::New]);
    }
    let seen = store.seen("a").await.unwrap();
    assert_eq!(
        (seen.low(), seen.status(2), seen.status(5)),
        (1, SeqStatus::New, SeqStatus::Duplicate)
    );
    assert_eq!(
        append(&store, vec![one("a", 5), one("a", 2)]).await,
        [Appended::Repeat, Appended::New]
    );
    assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (5, 5));
}

async fn settled_numbers_are_not_taken_again(place: Place) {
    let store = place.open().await;
    let records = || vec![record("acme", "tokens", "1", "1")];
    append(&store, vec![settling("a", 10, 8, records())]).await;
    // 9 is still open, 8 is not.
    assert_eq!(
        append(&store, vec![one("a", 8), one("a", 9)]).await,
        [Appended::Repeat, Appended::New]
    );
    // A repeat settles too, and that is remembered.
    assert_eq!(append(&store, vec![settling("a", 10, 20, records())]).await, [Appended::Repeat]);
    let store = reopened(&place, store).await;
    assert_eq!(store.seen("a").await.unwrap().low(), 20);
    assert_eq!(append(&store, vec![one("a", 15)]).await, [Appended::Repeat]);
    assert_eq!(count(&store).await, 2);
}

async fn a_number_too_far_ahead_is_refused_alone(place: Place) {
    let store = place.open().await;
    let outcomes = append(&store, vec![one("a", 1), one("a", SEQ_WINDOW + 2), one("a", 2)]).await;
    let refused = Appended::Refused(BatchRefusal::TooFar);
    assert_eq!(outcomes, [Appended::New, refused, Appended::New]);
    // Settling makes room for the same number.
    let batch = settling("a", SEQ_WINDOW + 3, 3, vec![record("acme", "tokens", "1", "1")]);
    assert_eq!(
        append(&store, vec![one("a", SEQ_WINDOW + 3), batch]).await,
        [refused, Appended::New]
    );
    assert_eq!(count(&store).await, 3);
}

async fn a_name_too_long_is_refused_alone(place: Place) {
    let store = place.open().await;
    // The worst that is allowed: each of these bytes takes two.
    let longest = "\u{1}".repeat(NAME_BYTES_MAX);
    let long = format!("{longest}a");
    let records = |tenant: &str, meter: &str| vec![record(tenant, meter, "1", "1")];
    let batches = vec![
        batch(&longest, 1, records(&longest, &longest)),
        batch("a", 1, records(&long, "tokens")),
        batch("b", 1, records("acme", &long)),
        batch(&long, 1, records("acme", "tokens")),
        one("c", 1),
    ];
    let refused = Appended::Refused(BatchRefusal::NameTooLong);
    let expected = [Appended::New, refused, refused, refused, Appended::New];
    assert_eq!(append(&store, batches).await, expected);
    assert_eq!(store.used(&longest, &longest, i64::MIN, i64::MAX).await.unwrap(), Decimal::ONE);
    assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (2, 0));
}

async fn senders_do_not_mix(place: Place) {
    let store = place.open().await;
    for seq in 1..=20 {
        let batches = ["a", "b", "", "a\0"].map(|sender| one(sender, seq)).to_vec();
        assert_eq!(append(&store, batches).await, [Appended::New; 4]);
    }
    for sender in ["a", "b", "", "a\0"] {
        assert_eq!(store.seen(sender).await.unwrap().low(), 20);
    }
    assert_eq!(store.seen("nobody").await.unwrap().low(), 0);
    assert_eq!(count(&store).await, 80);
}

async fn a_name_belongs_to_the_client_that_first_used_it(place: Place) {
    let store = place.open().await;
    let refused = Appended::Refused(BatchRefusal::SenderOwned);
    // One from before names had owners is claimed by its next user.
    append(&store, vec![one("old", 1)]).await;
    assert_eq!(store.owner("old").await.unwrap(), None);
    let batches = vec![
        owned("old", "x", 2),
        owned("new", "x", 1),
        owned("new", "y", 2),
        owned("none", "", 1),
        owned("none", "x", u64::MAX),
    ];
    let expected = [Appended::New, Appended::New, refused, Appended::New, refused];
    assert_eq!(append(&store, batches).await, expected);
    let store = reopened(&place, store).await;
    for (sender, owner) in [("old", "x"), ("new", "x"), ("none", "")] {
        assert_eq!(store.owner(sender).await.unwrap().as_deref(), Some(owner), "{sender}");
        let thief = if owner.is_empty() { "x" } else { "" };
        assert_eq!(append(&store, vec![owned(sender, thief, 3)]).await, [refused], "{sender}");
        assert_eq!(append(&store, vec![owned(sender, owner, 3)]).await, [Appended::New]);
    }
    // Where no tokens are configured, names have no owners.
    assert_eq!(append(&store, vec![one("new", 4)]).await, [Appended::New]);
    assert_eq!(store.owner("new").await.unwrap().as_deref(), Some("x"));
    assert_eq!((store.owner("nobody").await.unwrap(), count(&store).await), (None, 8));
}

async fn a_batch_without_an_origin_always_counts(place: Place) {
    let store = place.open().await;
    let records = vec![record("acme", "tokens", "1", "1")];
    let nameless = PricedBatch { origin: None, source: Arc::from("lines"), records };
    let outcomes = append(&store, vec![nameless.clone(), nameless.clone()]).await;
    assert_eq!(outcomes, [Appended::New; 2]);
    assert_eq!(append(&store, vec![nameless]).await, [Appended::New]);
    assert_eq!(count(&store).await, 3);
}

async fn nothing_is_a_batch_too(place: Place) {
    let store = place.open().await;
    assert_eq!(append(&store, vec![]).await, []);
    assert_eq!(append(&store, vec![batch("a", 1, vec![])]).await, [Appended::New]);
    assert_eq!(append(&store, vec![batch("a", 1, vec![])]).await, [Appended::Repeat]);
    assert_eq!(count(&store).await, 0);
    assert_eq!(usage(&store, &all(UsageBy::Tenant)).await, []);
    assert_eq!(store.used("acme", "tokens", 0, i64::MAX).await.unwrap(), Decimal::ZERO);
}

/// Two tenants, two meters, one fallback.
fn mixed() -> Vec<PricedRecord> {
    vec![
        record("zeta", "tokens", "10", "1.10"),
        record("acme", "tokens", "5", "0.55"),
        fallen_back(record("acme", "seconds", "0.25", "0")),
        record("acme", "tokens", "-2", "-0.22"),
    ]
}

async fn usage_is_by_tenant_by_meter_or_by_both(place: Place) {
    let store = place.open().await;
    append(&store, vec![batch("a", 1, mixed())]).await;
    let rows = |by| {
        let store = &store;
        async move {
            let rows = usage(store, &all(by)).await;
            let text = |name: Option<String>| name.unwrap_or_else(|| "-".into());
            let shown = rows.into_iter().map(|row| {
                let quantity = row.quantity.map_or("-".into(), |quantity| quantity.to_string());
                let (tenant, meter) = (text(row.tenant), text(row.meter));
                format!(
                    "{tenant} {meter} {} {} {quantity} {}",
                    row.records, row.fallbacks, row.amount
                )
            });
            shown.collect::<Vec<_>>()
        }
    };
    assert_eq!(rows(UsageBy::Tenant).await, ["acme - 3 1 - 0.33", "zeta - 1 0 - 1.1"]);
    assert_eq!(rows(UsageBy::Meter).await, ["- seconds 1 1 0.25 0", "- tokens 3 0 13 1.43"]);
    assert_eq!(
        rows(UsageBy::Both).await,
        ["acme seconds 1 1 0.25 0", "acme tokens 2 0 3 0.33", "zeta tokens 1 0 10 1.1"],
    );
    assert_eq!(store.used("acme", "tokens", i64::MIN, i64::MAX).await.unwrap(), number("3"));
    assert_eq!(store.used("zeta", "seconds", i64::MIN, i64::MAX).await.unwrap(), Decimal::ZERO);
}

async fn usage_can_be_of_one_tenant_or_meter(place: Place) {
    let store = place.open().await;
    append(&store, vec![batch("a", 1, mixed())]).await;
    // A name that begins as another is another.
    append(&store, vec![batch("a", 2, vec![record("acm", "token", "1", "1")])]).await;
    let records = |tenant: Option<&str>, meter: Option<&str>| {
        let query = all(UsageBy::Both).only(tenant, meter);
        let store = &store;
        async move { usage(store, &query).await.iter().map(|row| row.records).sum::<u64>() }
    };
    assert_eq!(records(Some("acme"), None).await, 3);
    assert_eq!(records(Some("acm"), None).await, 1);
    assert_eq!(records(None, Some("tokens")).await, 3);
    assert_eq!(records(Some("acme"), Some("seconds")).await, 1);
    assert_eq!(records(Some("zeta"), Some("seconds")).await, 0);
    assert_eq!(records(Some(""), None).await, 0);
}

async fn times_are_by_the_minute(place: Place) {
    let store = place.open().await;
    let start = NOW_NS.div_euclid(MINUTE_NS) * MINUTE_NS;
    let times = [start - 1, start, start + MINUTE_NS - 1, start + MINUTE_NS, -1, 0];
    let records = times.map(|time_ns| at(record("acme", "tokens", "1", "1"), time_ns)).to_vec();
    append(&store, vec![batch("a", 1, records)]).await;
    let used = |from_ns, until_ns| {
        let store = &store;
        async move { store.used("acme", "tokens", from_ns, until_ns).await.unwrap() }
    };
    assert_eq!(used(start, start + MINUTE_NS).await, number("2"));
    assert_eq!(used(start - MINUTE_NS, start).await, number("1"));
    assert_eq!(used(start, start).await, number("0"));
    assert_eq!(used(-MINUTE_NS, 0).await, number("1"));
    let counted = |from_ns, until_ns| {
        let query = UsageQuery::new(UsageBy::Tenant, from_ns, until_ns);
        let store = &store;
        async move { usage(store, &query).await.iter().map(|row| row.records).sum::<u64>() }
    };
    // From the middle of a minute to the middle of the next is both minutes.
    assert_eq!(counted(start + 30, start + MINUTE_NS + 30).await, 3);
    assert_eq!(counted(start, start + 1).await, 2);
    assert_eq!(counted(i64::MIN, 0).await, 1);
}

async fn long_times_are_summed_up_too(place: Place) {
    let store = place.open().await;
    // Two years, a record every 7 hours and 13 minutes, so that days, hours and minutes all matter.
    let step = 433 * MINUTE_NS;
    let times: Vec<_> = (0..2_400).map(|number| NOW_NS + number * step).collect();
    let mut seq = 0;
    for some in times.chunks(100) {
        seq += 1;
        let records = some.iter().map(|time_ns| at(record("acme", "tokens", "1", "1"), *time_ns));
        append(&store, vec![batch("a", seq, records.collect())]).await;
    }
    let store = reopened(&place, store).await;
    for (from, until) in [(0, 2_400), (3, 5), (100, 2_000), (1, 2_399), (700, 701)] {
        // One nanosecond before a minute that has a record, and one after the last.
        let (from_ns, until_ns) = (times[from], times[until - 1] + 1);
        let rows = usage(&store, &UsageQuery::new(UsageBy::Meter, from_ns, until_ns)).await;
        assert_eq!(rows[0].records, (until - from) as u64, "{from} .. {until}");
    }
}

async fn currencies_are_not_added_up(place: Place) {
    let store = place.open().await;
    let mut euros = record("acme", "tokens", "2", "3");
    euros.charge.currency = "EUR".parse().unwrap();
    append(&store, vec![batch("a", 1, vec![record("acme", "tokens", "1", "1"), euros])]).await;
    for by in [UsageBy::Tenant, UsageBy::Meter, UsageBy::Both] {
        let rows = usage(&store, &all(by)).await;
        let shown: Vec<_> = rows.iter().map(|row| (row.currency.code(), row.amount)).collect();
        assert_eq!(shown, [("EUR", number("3")), ("USD", number("1"))]);
    }
    // What was used is the same whatever it costs.
    assert_eq!(store.used("acme", "tokens", 0, i64::MAX).await.unwrap(), number("3"));
}

async fn extreme_numbers_are_exact(place: Place) {
    let store = place.open().await;
    let smallest = "0.0000000000000000000000000001";
    let extremes = [
        ("79228162514264337593543950335", "-79228162514264337593543950335"),
        (smallest, "7.9228162514264337593543950335"),
        ("-79228162514264337593543950335", "1234567890123456789012345678"),
        ("0", "-0.0000000000000000000000000001"),
        ("10000", "0.0001"),
        ("-0.00010000", "99990000"),
    ];
    let mut records: Vec<_> = extremes
        .iter()
        .map(|(quantity, amount)| record("acme", "tokens", quantity, amount))
        .collect();
    append(&store, vec![batch("a", 1, records.clone())]).await;
    let store = reopened(&place, store).await;
    sort(&mut records);
    assert_eq!(scan(&store, i64::MIN, i64::MAX).await, records);
    // The large ones cancel out, and what is left has not been rounded away.
    let used = store.used("acme", "tokens", i64::MIN, i64::MAX).await.unwrap();
    assert_eq!(used, number("9999.9999000000000000000000000001").normalize());
}

async fn a_sum_beyond_a_decimal_number_is_refused_and_never_saturates(place: Place) {
    let store = place.open().await;
    let refused = Appended::Refused(BatchRefusal::SumOverflow);
    let large = Decimal::MAX.to_string();
    let of = |tenant: &str, quantity: &str, amount: &str| record(tenant, "m", quantity, amount);
    let batches = vec![
        batch("s", 1, vec![of("a", &large, "1")]),
        batch("s", 2, vec![of("b", "7", "1"), of("a", "0.5", "1"), of("a", &large, "1")]),
        // Beside it, all others count: also one that brings the sum back.
        batch("s", 3, vec![of("b", "1", &large)]),
        batch("s", 4, vec![of("b", "1", &large)]),
        batch("s", 5, vec![of("a", &format!("-{large}"), "1")]),
        batch("s", 2, vec![of("a", "5", "1")]),
    ];
    let new = Appended::New;
    assert_eq!(append(&store, batches).await, [new, refused, new, refused, new, new]);
    let store = reopened(&place, store).await;
    let again = vec![batch("s", 6, vec![of("b", "1", &large)]), one("s", 7)];
    assert_eq!(append(&store, again).await, [refused, new]);
    let rows = usage(&store, &all(UsageBy::Tenant)).await;
    let told: Vec<_> = rows.iter().map(|row| (row.records, row.amount, row.overflow)).collect();
    let expected = [(3, 3.into()), (1, Decimal::new(5, 1)), (1, Decimal::MAX)];
    assert_eq!(told, expected.map(|(records, amount)| (records, amount, false)));
    // Days and tenants are summed up on their own; a sum over them says that it is beyond.
    let mut tomorrow = of("b", "1", &large);
    tomorrow.record.time_ns += 86_400_000_000_000;
    assert_eq!(append(&store, vec![batch("s", 8, vec![tomorrow])]).await, [new]);
    let rows = usage(&store, &all(UsageBy::Tenant).only(Some("b"), None)).await;
    assert_eq!((rows[0].records, rows[0].amount, rows[0].overflow), (2, Decimal::MAX, true));
}

async fn series_are_bounded_by_source_and_in_all_also_after_a_restart(place: Place) {
    let limits = SeriesLimits { per_source: 2, total: 3 };
    let store = place.open().await.limited(limits);
    let of = |source: &str, seq: u64, meters: &[&str]| {
        let records = meters.iter().map(|meter| record("acme", meter, "1", "1")).collect();
        batch(source, seq, records)
    };
    let of_source = Appended::Refused(BatchRefusal::TooManySeriesOfSource { limit: 2 });
    let of_all = Appended::Refused(BatchRefusal::TooManySeries { limit: 3 });
    let new = Appended::New;
    let batches = vec![
        of("a", 1, &["1", "2", "1"]),
        of("a", 2, &["1", "3"]),
        of("b", 1, &["2", "4"]),
        of("b", 2, &["5"]),
        of("a", 2, &["1", "4"]),
    ];
    assert_eq!(append(&store, batches).await, [new, of_source, new, of_all, new]);
    let store = reopened(&place, store).await.limited(limits);
    let batches = vec![of("a", 3, &["6"]), of("b", 2, &["6"]), of("c", 1, &["1", "2", "4"])];
    assert_eq!(append(&store, batches).await, [of_source, of_all, new]);
    assert_eq!(usage(&store, &all(UsageBy::Both)).await.len(), 3);
    // What is too old is forgotten, and others may begin.
    store.retain(NOW_NS + 100 * 86_400_000_000_000).await.unwrap();
    let batches = vec![of("a", 4, &["6", "7"]), of("b", 3, &["8"]), of("c", 2, &["9"])];
    assert_eq!(append(&store, batches).await, [new, new, of_all]);
}

async fn names_may_be_of_any_letters(place: Place) {
    let store = place.open().await;
    // In the order of their bytes.
    let names = [
        "",
        "\0",
        "\0a",
        "\u{1}",
        "\u{1}0",
        " ",
        "A b",
        "a",
        "a\0",
        "a\0b",
        "a/b",
        "ä",
        "日本語",
        "🌊",
    ];
    let mut records = Vec::new();
    for tenant in names {
        for meter in ["", "\0", "ö,=\"'\\", "🌊"] {
            let mut priced = record(tenant, meter, "1", "1");
            priced.record.labels = Arc::from(tenant);
            priced.charge.tariff = Arc::from(meter);
            records.push(priced);
        }
    }
    append(&store, vec![batch("🌊\0", 1, records.clone())]).await;
    let store = reopened(&place, store).await;
    sort(&mut records);
    assert_eq!(scan(&store, i64::MIN, i64::MAX).await, records);
    let tenants =
        usage(&store, &all(UsageBy::Tenant)).await.into_iter().map(|row| row.tenant.unwrap());
    assert_eq!(tenants.collect::<Vec<_>>(), names);
    for tenant in names {
        assert_eq!(store.used(tenant, "\0", i64::MIN, i64::MAX).await.unwrap(), Decimal::ONE);
        let query = all(UsageBy::Both).only(Some(tenant), None);
        assert_eq!(usage(&store, &query).await.len(), 4);
    }
    assert_eq!(store.seen("🌊\0").await.unwrap().low(), 1);
}

async fn large_batches_are_stored_whole(place: Place) {
    let store = place.open().await;
    let records = |seq: u64| {
        let each = (0..10_000).map(move |number: u64| {
            let tenant = format!("tenant-{}", number % 37);
            let time_ns = NOW_NS + (seq * 10_000 + number) as i64 * 1_000_000;
            at(record(&tenant, "tokens", "1.5", "0.001"), time_ns)
        });
        each.collect::<Vec<_>>()
    };
    for seq in 1..=3 {
        let batches = vec![batch("a", seq, records(seq)), batch("b", seq, records(seq))];
        assert_eq!(append(&store, batches).await, [Appended::New; 2]);
    }
    let store = reopened(&place, store).await;
    assert_eq!(count(&store).await, 60_000);
    let rows = usage(&store, &all(UsageBy::Meter)).await;
    assert_eq!((rows[0].quantity, rows[0].amount), (Some(number("90000")), number("60")));
}

async fn reads_go_on_while_others_append(place: Place) {
    let store = Arc::new(place.open().await);
    let writer = tokio::spawn({
        let store = store.clone();
        async move {
            for seq in 1..=60 {
                append(
                    &*store,
                    vec![batch("a", seq, vec![record("acme", "tokens", "1", "2"); 100])],
                )
                .await;
            }
        }
    });
    let mut last = 0;
    while !writer.is_finished() {
        let rows = usage(&*store, &all(UsageBy::Both)).await;
        let records = rows.iter().map(|row| row.records).sum::<u64>();
        // Whole batches only, and never less than before.
        assert!(records >= last && records % 100 == 0, "{records} after {last}");
        let amount = rows.iter().map(|row| row.amount).sum::<Decimal>();
        assert_eq!(amount, Decimal::from(records * 2));
        last = records;
    }
    writer.await.unwrap();
    assert_eq!(count(&*store).await, 6_000);
}

async fn appends_of_many_at_once_all_count(place: Place) {
    let store = Arc::new(place.open().await);
    let tasks = (0..16).map(|task| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut new = 0;
            for seq in 1..=10 {
                // Each batch is sent by two tasks.
                let outcomes =
                    append(&*store, vec![one(&format!("sender-{}", task / 2), seq)]).await;
                new += usize::from(outcomes == [Appended::New]);
            }
            new
        })
    });
    let mut new = 0;
    for task in tasks.collect::<Vec<_>>() {
        new += task.await.unwrap();
    }
    assert_eq!((new, count(&*store).await), (80, 80));
}

async fn a_scan_that_nobody_reads_harms_nobody(place: Place) {
    let store = place.open().await;
    let many = || vec![record("acme", "tokens", "1", "1"); 10_000];
    append(&store, vec![batch("a", 1, many())]).await;
    let unread = store.scan(i64::MIN, i64::MAX);
    append(&store, vec![batch("a", 2, many())]).await;
    drop(unread);
    assert_eq!(count(&store).await, 20_000);
}

async fn what_is_too_old_can_be_deleted(place: Place) {
    let store = place.open().await;
    let day = 24 * 60 * MINUTE_NS;
    let start = NOW_NS.div_euclid(day) * day;
    let times = [start - 10 * day, start - 1, start, start + day];
    let records = times.map(|time_ns| at(record("acme", "tokens", "1", "1"), time_ns)).to_vec();
    append(&store, vec![batch("a", 1, records)]).await;
    assert!(store.retain(start + day / 2).await.unwrap() >= 2);
    assert_eq!(count(&store).await, 2);
    let store = reopened(&place, store).await;
    assert_eq!(count(&store).await, 2);
    // It sent after that day, whatever the times in its records.
    assert_eq!(append(&store, vec![one("a", 1)]).await, [Appended::Repeat]);
    store.retain(i64::MAX).await.unwrap();
    assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (0, 0));
}

async fn any_history_is_as_the_model_says(place: Place) {
    model::check(&place).await;
}
