use super::read;
use super::submit::number;
use super::transaction::{TransactionError, Work};
use crate::storage::name::escape;
use crate::storage::postgres::Settings;
use crate::tasks::{Claim, ClaimGroup, Claimed};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

/// A parameter of a statement, with its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// By priority and sequence, and without waiting for rows that another manager claims at the same time. An owner
/// without a heartbeat yet gets its row: without one nobody would ever find it gone.
const CLAIM: &str = "WITH found AS MATERIALIZED ( \
        SELECT id, priority, seq FROM $schema.tasks \
        WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms IS NULL \
            AND priority IS NOT NULL $of_runtimes \
        ORDER BY priority, seq LIMIT $3 FOR UPDATE SKIP LOCKED \
    ), placed AS ( \
        SELECT id, row_number() OVER (ORDER BY priority, seq) AS place FROM found \
    ), owners AS ( \
        INSERT INTO $schema.owners (owner, alive_until) VALUES ($1, now() + interval '15 seconds') \
        ON CONFLICT DO NOTHING \
    ) \
    UPDATE $schema.tasks AS task SET owner = $1, life = $2, version = version + 1, \
        claimed = true, executor = ($4::text[])[place::int] \
    FROM placed JOIN $schema.specs USING (id) WHERE task.id = placed.id \
    RETURNING task.id, task.version, task.owner, task.state, task.executor, spec, \
        task.priority, task.seq";

/// Claims of this opening of the store that no step has followed.
const CLAIMED: &str = "SELECT id, version, owner, state, executor, spec \
    FROM $schema.tasks JOIN $schema.specs USING (id) \
    WHERE owner = $1 AND life = $2 AND status = 0 AND claimed";

/// Retries whose time has come. Without those that another manager is at.
const QUEUE_DUE: &str = "UPDATE $schema.tasks AS task SET not_before_ms = NULL FROM ( \
        SELECT id FROM $schema.tasks \
        WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms <= $1 \
        ORDER BY not_before_ms LIMIT 1000 FOR UPDATE SKIP LOCKED \
    ) AS due WHERE task.id = due.id";

// === impl Claim ===

impl Work for Claim {
    type Done = Claimed;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<Claimed, TransactionError> {
        let failed = |error| TransactionError::of(settings, &error);
        let owner = escape(&self.owner).into_owned();
        if let Some(due_ms) = self.due_ms.map(number) {
            let statement = settings.schema.sql(QUEUE_DUE);
            transaction
                .execute_typed(&statement, &[(&due_ms, Type::INT8)])
                .await
                .map_err(failed)?;
        }
        let mut claimed = Claimed::default();
        if self.doubt {
            let statement = settings.schema.sql(CLAIMED);
            let parameters: [Parameter<'_>; 2] = [(&owner, Type::TEXT), (&life, Type::INT8)];
            let rows = transaction.query_typed(&statement, &parameters).await.map_err(failed)?;
            claimed.before = read::readable(&rows);
        }
        let mut rows = Vec::new();
        for group in &self.groups {
            rows.extend(claim(transaction, settings, (&owner, life), group).await.map_err(failed)?);
        }
        rows.sort_by_key(|row| (row.get::<_, i16>(6), row.get::<_, i64>(7)));
        claimed.tasks = read::readable(&rows);
        Ok(claimed)
    }
}

async fn claim(
    transaction: &Transaction<'_>,
    settings: &Settings,
    (owner, life): (&String, i64),
    group: &ClaimGroup,
) -> Result<Vec<Row>, tokio_postgres::Error> {
    let runtimes = group.runtimes.as_ref();
    let of_runtimes = if runtimes.is_some() { "AND runtime = ANY($5)" } else { "" };
    let statement = settings.schema.sql(&CLAIM.replace("$of_runtimes", of_runtimes));
    let executors: Vec<_> = group.executors.iter().map(|name| escape(name)).collect();
    let limit = number(executors.len() as u64);
    let mut parameters: Vec<Parameter<'_>> = vec![
        (owner, Type::TEXT),
        (&life, Type::INT8),
        (&limit, Type::INT8),
        (&executors, Type::TEXT_ARRAY),
    ];
    parameters.extend(runtimes.map(|names| (names as _, Type::TEXT_ARRAY)));
    transaction.query_typed(&statement, &parameters).await
}
