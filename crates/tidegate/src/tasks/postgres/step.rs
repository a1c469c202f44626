use super::count::Delta;
use super::read;
use super::submit::{ended_ms, number, text};
use super::transaction::TransactionError;
use crate::storage::StoreError;
use crate::storage::name::escape;
use crate::storage::postgres::Settings;
use crate::tasks::codec::{self, status_code};
use crate::tasks::{Change, ChangeOutcome};
use std::collections::HashMap;
use tidegate_core::task::TaskId;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

/// A version says which state it is, so the status beside it in the same view is the one that is left.
const UPDATE: &str = "WITH given AS ( \
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::smallint[], $4::text[], $5::bigint[], \
            $6::text[], $7::bytea[], $8::text[], $9::bigint[]) \
        AS given (id, version, status, owner, ended_ms, state, output, executor, not_before_ms) \
    ), kept AS ( \
        UPDATE $schema.tasks AS task SET version = given.version, status = given.status, \
            owner = given.owner, ended_ms = given.ended_ms, state = given.state, \
            executor = given.executor, not_before_ms = given.not_before_ms, claimed = false \
        FROM given JOIN $schema.tasks AS old USING (id) \
        WHERE task.id = given.id AND task.version = given.version - 1 AND task.status < 3 \
        RETURNING task.id, old.status \
    ), outputs AS ( \
        INSERT INTO $schema.outputs (id, chunks) SELECT id, output FROM given \
        WHERE output IS NOT NULL AND id IN (SELECT id FROM kept) \
        ON CONFLICT (id) DO UPDATE SET chunks = excluded.chunks \
    ) \
    SELECT id, status FROM kept";

const FIND: &str = "SELECT id, version, owner, state, CASE WHEN claimed THEN executor END \
    FROM $schema.tasks WHERE id = ANY($1)";

/// A step to persist.
pub(super) struct Step {
    pub(super) id: TaskId,
    pub(super) state: String,
    pub(super) output: Option<Vec<u8>>,
    version: i64,
    status: i16,
    owner: String,
    ended_ms: Option<i64>,
    executor: Option<String>,
    not_before_ms: Option<i64>,
}

// === impl Step ===

impl Step {
    /// True for a task that any manager may claim now.
    pub(super) fn is_unowned(&self) -> bool {
        self.owner.is_empty() && self.status == 0 && self.not_before_ms.is_none()
    }

    pub(super) fn new(change: &Change) -> Result<Self, StoreError> {
        let (id, state) = (&change.id, &change.state);
        let assignment = state.assignment.as_ref();
        let output = change.output.as_ref().map(|chunks| codec::write_output(id, chunks));
        Ok(Self {
            id: id.clone(),
            state: text(codec::write_state(id, state, Vec::new())?),
            output: output.transpose()?,
            version: number(state.version),
            status: i16::from(status_code(state.status)),
            owner: escape(&state.owner).into_owned(),
            ended_ms: ended_ms(state),
            executor: assignment.map(|assignment| escape(&assignment.executor).into_owned()),
            not_before_ms: state.not_before_ms.map(number),
        })
    }
}

/// Persists the steps that start from the newest state. Returns a result for each, in their order.
pub(super) async fn persist(
    transaction: &Transaction<'_>,
    settings: &Settings,
    steps: &[Step],
) -> Result<(Vec<Result<ChangeOutcome, StoreError>>, Delta), TransactionError> {
    let mut delta = Delta::default();
    if steps.is_empty() {
        return Ok((Vec::new(), delta));
    }
    let failed = |error| TransactionError::of(settings, &error);
    let kept = update(transaction, settings, steps).await?;
    let others: Vec<_> = steps.iter().map(|step| step.id.as_str()).collect();
    let others: Vec<_> = others.into_iter().filter(|id| !kept.contains_key(*id)).collect();
    let found = match others.is_empty() {
        true => Vec::new(),
        false => {
            let statement = settings.schema.sql(FIND);
            let rows = transaction.query_typed(&statement, &[(&others, Type::TEXT_ARRAY)]).await;
            rows.map_err(failed)?
        }
    };
    let mut outcomes = Vec::with_capacity(steps.len());
    for step in steps {
        if let Some(was) = kept.get(step.id.as_str()) {
            delta.change(*was, -1);
            delta.change(step.status, 1);
            outcomes.push(Ok(ChangeOutcome::Yes));
        } else {
            let row = found.iter().find(|row| row.get::<_, &str>(0) == step.id.as_str());
            outcomes.push(row.map(read::state).transpose().map(ChangeOutcome::Conflict));
        }
    }
    Ok((outcomes, delta))
}

/// Updates the tasks. Returns the previous status of each persisted task.
async fn update(
    transaction: &Transaction<'_>,
    settings: &Settings,
    steps: &[Step],
) -> Result<HashMap<String, i16>, TransactionError> {
    let ids: Vec<_> = steps.iter().map(|step| step.id.as_str()).collect();
    let versions: Vec<_> = steps.iter().map(|step| step.version).collect();
    let statuses: Vec<_> = steps.iter().map(|step| step.status).collect();
    let owners: Vec<_> = steps.iter().map(|step| step.owner.as_str()).collect();
    let ended_ms: Vec<_> = steps.iter().map(|step| step.ended_ms).collect();
    let states: Vec<_> = steps.iter().map(|step| step.state.as_str()).collect();
    let outputs: Vec<_> = steps.iter().map(|step| step.output.as_deref()).collect();
    let executors: Vec<_> = steps.iter().map(|step| step.executor.as_deref()).collect();
    let not_before_ms: Vec<_> = steps.iter().map(|step| step.not_before_ms).collect();
    let statement = settings.schema.sql(UPDATE);
    let rows = transaction
        .query_typed(
            &statement,
            &[
                (&ids, Type::TEXT_ARRAY),
                (&versions, Type::INT8_ARRAY),
                (&statuses, Type::INT2_ARRAY),
                (&owners, Type::TEXT_ARRAY),
                (&ended_ms, Type::INT8_ARRAY),
                (&states, Type::TEXT_ARRAY),
                (&outputs, Type::BYTEA_ARRAY),
                (&executors, Type::TEXT_ARRAY),
                (&not_before_ms, Type::INT8_ARRAY),
            ],
        )
        .await;
    let rows = rows.map_err(|error| TransactionError::of(settings, &error))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
