use super::count::Delta;
use super::read;
use super::transaction::TransactionError;
use crate::storage::StoreError;
use crate::storage::name::escape;
use crate::storage::postgres::Settings;
use crate::tasks::codec::{self, status_code};
use crate::tasks::{NewTask, Submission};
use std::collections::HashSet;
use tidegate_core::task::{TaskId, TaskState};
use tokio_postgres::types::Type;
use tokio_postgres::{Row, Transaction};

const INSERT: &str = "WITH given AS ( \
        SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::smallint[], \
            $6::text[], $7::bigint[], $8::text[], $9::text[], $11::text[], $12::smallint[], \
            $13::text[]) WITH ORDINALITY \
        AS given (id, key, fingerprint, version, status, owner, ended_ms, state, spec, client, \
            priority, runtime, place) \
    ), new AS ( \
        INSERT INTO $schema.tasks \
            (id, key, fingerprint, version, status, owner, life, ended_ms, state, client, \
            priority, runtime) \
        SELECT id, key, fingerprint, version, status, owner, $10, ended_ms, state, client, \
            priority, runtime \
        FROM given ORDER BY place ON CONFLICT DO NOTHING RETURNING id \
    ), specs AS ( \
        INSERT INTO $schema.specs (id, spec) \
        SELECT id, spec FROM given WHERE id IN (SELECT id FROM new) \
    ), owners AS ( \
        INSERT INTO $schema.owners (owner, alive_until) SELECT DISTINCT owner, now() FROM given \
        WHERE owner <> '' \
        ON CONFLICT DO NOTHING \
    ) \
    SELECT id FROM new";

/// Those that were there before, under the same name or with the same key.
const FIND: &str = "SELECT id, version, owner, state, CASE WHEN claimed THEN executor END, spec, \
        key, fingerprint \
    FROM $schema.tasks JOIN $schema.specs USING (id) WHERE id = ANY($1) OR key = ANY($2)";

/// A task that is to be kept, as far as it can be made ready by whoever submits it.
pub(super) struct NewRow {
    pub(super) id: TaskId,
    pub(super) key: Option<String>,
    pub(super) state: String,
    pub(super) spec: String,
    fingerprint: Vec<u8>,
    version: i64,
    status: i16,
    owner: String,
    ended_ms: Option<i64>,
    client: Option<String>,
    priority: i16,
    runtime: String,
}

// === impl NewRow ===

impl NewRow {
    /// True for a task that any manager may claim.
    pub(super) fn is_unowned(&self) -> bool {
        self.owner.is_empty()
    }

    pub(super) fn new(task: &NewTask) -> Result<Self, StoreError> {
        let (id, state) = (&task.record.id, &task.record.state);
        Ok(Self {
            id: id.clone(),
            key: task.key.as_deref().map(|key| escape(key).into_owned()),
            state: text(codec::write_state(id, state, Vec::new())?),
            spec: text(codec::write_spec(id, &task.record.spec, Vec::new())?),
            fingerprint: task.fingerprint.to_vec(),
            version: number(state.version),
            status: i16::from(status_code(state.status)),
            owner: escape(&state.owner).into_owned(),
            ended_ms: ended_ms(state),
            client: state.client.as_deref().map(str::to_owned),
            priority: task.record.spec.priority as i16,
            runtime: task.record.spec.runtime.replace('\0', ""),
        })
    }
}

/// Keeps those that are new; what became of each, in their order.
pub(super) async fn submit(
    transaction: &Transaction<'_>,
    settings: &Settings,
    life: i64,
    news: &[NewRow],
) -> Result<(Vec<Result<Submission, StoreError>>, Delta), TransactionError> {
    let mut delta = Delta::default();
    if news.is_empty() {
        return Ok((Vec::new(), delta));
    }
    let kept = insert(transaction, settings, life, news).await?;
    let others: Vec<&NewRow> = news.iter().filter(|new| !kept.contains(new.id.as_str())).collect();
    let found = match others.is_empty() {
        true => Vec::new(),
        false => find(transaction, settings, &others).await?,
    };
    let mut outcomes = Vec::with_capacity(news.len());
    for new in news {
        if kept.contains(new.id.as_str()) {
            delta.change(new.status, 1);
            outcomes.push(Ok(Submission::New));
        } else {
            outcomes.push(compare(new, &found)?);
        }
    }
    Ok((outcomes, delta))
}

async fn insert(
    transaction: &Transaction<'_>,
    settings: &Settings,
    life: i64,
    news: &[NewRow],
) -> Result<HashSet<String>, TransactionError> {
    let ids: Vec<_> = news.iter().map(|new| new.id.as_str()).collect();
    let keys: Vec<_> = news.iter().map(|new| new.key.as_deref()).collect();
    let fingerprints: Vec<_> = news.iter().map(|new| &new.fingerprint[..]).collect();
    let versions: Vec<_> = news.iter().map(|new| new.version).collect();
    let statuses: Vec<_> = news.iter().map(|new| new.status).collect();
    let owners: Vec<_> = news.iter().map(|new| new.owner.as_str()).collect();
    let ended_ms: Vec<_> = news.iter().map(|new| new.ended_ms).collect();
    let states: Vec<_> = news.iter().map(|new| new.state.as_str()).collect();
    let specs: Vec<_> = news.iter().map(|new| new.spec.as_str()).collect();
    let clients: Vec<_> = news.iter().map(|new| new.client.as_deref()).collect();
    let priorities: Vec<_> = news.iter().map(|new| new.priority).collect();
    let runtimes: Vec<_> = news.iter().map(|new| new.runtime.as_str()).collect();
    let statement = settings.schema.sql(INSERT);
    let rows = transaction
        .query_typed(
            &statement,
            &[
                (&ids, Type::TEXT_ARRAY),
                (&keys, Type::TEXT_ARRAY),
                (&fingerprints, Type::BYTEA_ARRAY),
                (&versions, Type::INT8_ARRAY),
                (&statuses, Type::INT2_ARRAY),
                (&owners, Type::TEXT_ARRAY),
                (&ended_ms, Type::INT8_ARRAY),
                (&states, Type::TEXT_ARRAY),
                (&specs, Type::TEXT_ARRAY),
                (&life, Type::INT8),
                (&clients, Type::TEXT_ARRAY),
                (&priorities, Type::INT2_ARRAY),
                (&runtimes, Type::TEXT_ARRAY),
            ],
        )
        .await;
    let rows = rows.map_err(|error| TransactionError::of(settings, &error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

async fn find(
    transaction: &Transaction<'_>,
    settings: &Settings,
    others: &[&NewRow],
) -> Result<Vec<Row>, TransactionError> {
    let ids: Vec<_> = others.iter().map(|new| new.id.as_str()).collect();
    let keys: Vec<_> = others.iter().filter_map(|new| new.key.as_deref()).collect();
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&ids, Type::TEXT_ARRAY), (&keys, Type::TEXT_ARRAY)];
    let rows = transaction.query_typed(&settings.schema.sql(FIND), &parameters).await;
    rows.map_err(|error| TransactionError::of(settings, &error))
}

/// Compares a submission with the earlier ones under the same id or key.
fn compare(
    new: &NewRow,
    found: &[Row],
) -> Result<Result<Submission, StoreError>, TransactionError> {
    let same_id = found.iter().find(|row| row.get::<_, &str>(0) == new.id.as_str());
    let same_key = || {
        let key = new.key.as_deref()?;
        found.iter().find(|row| row.get::<_, Option<&str>>(6) == Some(key))
    };
    let Some(row) = same_id.or_else(same_key) else {
        // It was forgotten between the two statements.
        return Err(TransactionError::Again("a task was forgotten at the same time".to_owned()));
    };
    if row.get::<_, &[u8]>(7) == new.fingerprint {
        return Ok(read::record(row).map(Submission::Same));
    }
    Ok(match same_id {
        Some(_) => Ok(Submission::OtherUnderId(new.id.clone())),
        None => read::id(row).map(Submission::OtherUnderKey),
    })
}

/// JSON as text.
pub(super) fn text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_default()
}

/// A number as PostgreSQL has them.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// When a task ended, if it is over.
pub(super) fn ended_ms(state: &TaskState) -> Option<i64> {
    state.status.is_over().then(|| number(state.ended_ms.unwrap_or(state.submitted_ms)))
}
