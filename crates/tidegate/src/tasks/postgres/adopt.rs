use super::count::Delta;
use super::transaction::{TransactionError, Work};
use super::{count, read};
use crate::storage::postgres::Settings;
use crate::tasks::TaskRecord;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// By the database's clock, and without waiting for rows that somebody else is at: those are not ours to take.
/// Rows that a process of an earlier version wrote get what the queue asks for.
const ADOPT: &str = "WITH gone AS ( \
        SELECT owner FROM $schema.owners WHERE owner <> $1 AND alive_until <= now() \
    ), found AS ( \
        SELECT id FROM $schema.tasks \
        WHERE status < 3 AND ((owner = $1 AND life <> $2) OR owner IN (SELECT owner FROM gone)) \
        ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED \
    ) \
    UPDATE $schema.tasks AS task SET owner = $1, life = $2, version = version + 1, \
        priority = coalesce(task.priority, array_position(ARRAY['critical', 'high', 'normal', 'low'], \
            substring(spec from '\"priority\":\"([a-z]+)\",\"timeout_ms\":[0-9]+,\"retries\":[0-9]+\\}$')) - 1), \
        runtime = coalesce(task.runtime, substring(spec from '^\\{\"runtime\":\"([^\"\\\\]*)\"')) \
    FROM found JOIN $schema.specs USING (id) WHERE task.id = found.id \
    RETURNING task.id, task.version, task.owner, task.state, \
        CASE WHEN claimed THEN executor END, spec, task.seq";

/// The condition of [`ADOPT`], that of the owner's earlier lives alone, and that of queued tasks which belong to
/// nobody.
const OF_THE_GONE: &str = "((owner = $1 AND life <> $2) OR owner IN (SELECT owner FROM gone))";
const OWN: &str = "owner = $1 AND life <> $2";
const QUEUED: &str = "status = 0 AND owner = '' AND executor IS NULL";

const FORGET: &str = "WITH gone AS ( \
        DELETE FROM $schema.tasks WHERE id IN ( \
            SELECT id FROM $schema.tasks WHERE ended_ms < $1 AND status >= 3 \
            ORDER BY ended_ms LIMIT $2 FOR UPDATE SKIP LOCKED) \
        RETURNING id, status \
    ), specs AS ( \
        DELETE FROM $schema.specs WHERE id IN (SELECT id FROM gone) \
    ), outputs AS ( \
        DELETE FROM $schema.outputs WHERE id IN (SELECT id FROM gone) \
    ) \
    SELECT status, count(*) FROM gone GROUP BY status";

/// Makes tasks whose owner is gone this owner's, the oldest first.
pub(super) struct Adopt {
    pub(super) owner: String,
    pub(super) limit: i64,
    pub(super) whose: Whose,
}

/// Former owner of tasks that are adopted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The same owner in an earlier life.
    Own,
    /// The same owner in an earlier life, and owners that are gone.
    OwnAndOfTheGone,
    /// Nobody: those that wait.
    Nobodys,
}

/// Deletes tasks that ended before a moment.
pub(super) struct Forget {
    pub(super) ended_before_ms: i64,
    pub(super) limit: i64,
}

// === impl Adopt ===

impl Work for Adopt {
    type Done = Vec<TaskRecord>;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<Vec<TaskRecord>, TransactionError> {
        let statement = match self.whose {
            Whose::Own => ADOPT.replace(OF_THE_GONE, OWN),
            Whose::OwnAndOfTheGone => ADOPT.to_owned(),
            Whose::Nobodys => ADOPT.replace(OF_THE_GONE, QUEUED),
        };
        let statement = settings.schema.sql(&statement);
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.owner, Type::TEXT), (&life, Type::INT8), (&self.limit, Type::INT8)];
        let rows = transaction.query_typed(&statement, &parameters).await;
        let mut rows = rows.map_err(|error| TransactionError::of(settings, &error))?;
        rows.sort_by_key(|row| row.get::<_, i64>(6));
        Ok(read::readable(&rows))
    }
}

// === impl Forget ===

impl Work for Forget {
    type Done = u64;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<u64, TransactionError> {
        let statement = settings.schema.sql(FORGET);
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.ended_before_ms, Type::INT8), (&self.limit, Type::INT8)];
        let rows = transaction.query_typed(&statement, &parameters).await;
        let mut gone = Delta::default();
        for row in rows.map_err(|error| TransactionError::of(settings, &error))? {
            gone.change(row.get(0), -row.get::<_, i64>(1));
        }
        let removed = gone.removed();
        count::add(transaction, settings, life, gone).await?;
        Ok(removed)
    }
}
