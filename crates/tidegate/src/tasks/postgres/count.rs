use super::transaction::TransactionError;
use crate::storage::postgres::Settings;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

const ADD: &str = "INSERT INTO $schema.counts AS old (life, counts) VALUES ($1, $2) \
    ON CONFLICT (life) DO UPDATE SET counts = ARRAY( \
        SELECT a + b FROM unnest(old.counts, excluded.counts) WITH ORDINALITY AS pair (a, b, place) \
        ORDER BY place)";

/// Many lives leave many rows: from time to time they become one.
const FOLD: &str = "WITH gone AS ( \
        DELETE FROM $schema.counts \
        WHERE life <> 0 AND (SELECT count(*) FROM $schema.counts) > 32 RETURNING counts \
    ) \
    INSERT INTO $schema.counts AS old (life, counts) \
    SELECT 0, ARRAY[sum(counts[1])::bigint, sum(counts[2])::bigint, sum(counts[3])::bigint, \
        sum(counts[4])::bigint, sum(counts[5])::bigint, sum(counts[6])::bigint] \
    FROM gone HAVING count(*) > 0 \
    ON CONFLICT (life) DO UPDATE SET counts = ARRAY( \
        SELECT a + b FROM unnest(old.counts, excluded.counts) WITH ORDINALITY AS pair (a, b, place) \
        ORDER BY place)";

/// By how much the number of tasks in each status changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Delta([i64; 6]);

// === impl Delta ===

impl Delta {
    pub(super) fn change(&mut self, status: i16, by: i64) {
        let count = usize::try_from(status).ok().and_then(|status| self.0.get_mut(status));
        if let Some(count) = count {
            *count += by;
        }
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(count, by)| *count += by);
        self
    }

    /// Number of removed tasks, if none was added.
    pub(super) fn removed(&self) -> u64 {
        self.0.iter().sum::<i64>().unsigned_abs()
    }
}

pub(super) async fn add(
    transaction: &Transaction<'_>,
    settings: &Settings,
    life: i64,
    delta: Delta,
) -> Result<(), TransactionError> {
    if delta == Delta::default() {
        return Ok(());
    }
    let counts = delta.0.to_vec();
    let statement = settings.schema.sql(ADD);
    transaction
        .execute_typed(&statement, &[(&life, Type::INT8), (&counts, Type::INT8_ARRAY)])
        .await
        .map(drop)
        .map_err(|error| TransactionError::of(settings, &error))
}

/// Only for speed: what fails here is done by the next that connects.
pub(super) async fn fold(client: &Client, settings: &Settings) {
    if let Err(error) = client.execute(&settings.schema.sql(FOLD), &[]).await {
        tracing::debug!(%error, "the counts of tasks are not folded now");
    }
}
