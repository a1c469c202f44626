use super::hints;
use super::read;
use super::transaction::{TransactionError, Work};
use crate::storage::postgres::Settings;
use crate::tasks::TaskRecord;
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// Life 0 is that of no process.
const HAND_OVER: &str = "UPDATE $schema.tasks SET life = 0, version = version + 1 \
    WHERE owner = $1 AND life = $2 AND status < 3 AND executor = ANY($3)";

/// Without waiting for rows that another manager takes over at the same time.
const TAKE_OVER: &str = "WITH found AS ( \
        SELECT id FROM $schema.tasks WHERE life = 0 AND status < 3 AND executor = ANY($3) \
        ORDER BY seq LIMIT $4 FOR UPDATE SKIP LOCKED \
    ) \
    UPDATE $schema.tasks AS task SET owner = $1, life = $2, version = version + 1 \
    FROM found JOIN $schema.specs USING (id) WHERE task.id = found.id \
    RETURNING task.id, task.version, task.owner, task.state, \
        CASE WHEN claimed THEN task.executor END, spec";

/// Gives this owner's executions at these executors to whoever knows them too.
pub(super) struct HandOver {
    pub(super) owner: String,
    pub(super) executors: Vec<String>,
}

/// Takes over executions at these executors that another manager has handed over.
pub(super) struct TakeOver {
    pub(super) owner: String,
    pub(super) executors: Vec<String>,
    pub(super) limit: i64,
}

// === impl HandOver ===

impl Work for HandOver {
    type Done = u64;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<u64, TransactionError> {
        let failed = |error| TransactionError::of(settings, &error);
        let statement = settings.schema.sql(HAND_OVER);
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.owner, Type::TEXT), (&life, Type::INT8), (&self.executors, Type::TEXT_ARRAY)];
        let handed = transaction.execute_typed(&statement, &parameters).await.map_err(failed)?;
        if handed > 0 {
            hints::notify(transaction, settings, hints::HANDED_OVER).await?;
        }
        Ok(handed)
    }
}

// === impl TakeOver ===

impl Work for TakeOver {
    type Done = Vec<TaskRecord>;

    async fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> Result<Vec<TaskRecord>, TransactionError> {
        let statement = settings.schema.sql(TAKE_OVER);
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.owner, Type::TEXT),
            (&life, Type::INT8),
            (&self.executors, Type::TEXT_ARRAY),
            (&self.limit, Type::INT8),
        ];
        let rows = transaction.query_typed(&statement, &parameters).await;
        let rows = rows.map_err(|error| TransactionError::of(settings, &error))?;
        Ok(rows.iter().map(read::record).collect::<Result<_, _>>()?)
    }
}
