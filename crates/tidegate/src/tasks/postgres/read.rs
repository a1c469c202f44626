use crate::storage::StoreError;
use crate::storage::name::unescape;
use crate::storage::postgres::Settings;
use crate::storage::postgres::store_error;
use crate::tasks::bounds::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::tasks::codec::{self, status_code};
use crate::tasks::{QueueDepth, TaskPage, TaskQuery, TaskRecord};
use std::sync::Arc;
use tidegate_core::task::{OutputChunk, TaskId, TaskState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

const GET: &str = "SELECT id, version, owner, state, CASE WHEN claimed THEN executor END, spec \
    FROM $schema.tasks JOIN $schema.specs USING (id) WHERE id = $1";

const OUTPUT: &str = "SELECT chunks FROM $schema.outputs WHERE id = $1";

/// A page, and of that no more bytes than are good for us.
const LIST: &str = "SELECT id, version, owner, state, claim, spec, seq FROM ( \
        SELECT id, version, owner, state, CASE WHEN claimed THEN executor END AS claim, spec, seq, \
            sum(octet_length(spec)) OVER (ORDER BY seq DESC) - octet_length(spec) AS bytes_before \
        FROM (SELECT * FROM $schema.tasks WHERE seq < $1 $status $of_client ORDER BY seq DESC LIMIT $2) AS found \
        JOIN $schema.specs USING (id) \
    ) AS page WHERE bytes_before < $3 ORDER BY seq DESC";

const NEXT: &str =
    "SELECT seq FROM $schema.tasks WHERE seq < $1 $status $of_client ORDER BY seq DESC LIMIT 1";

/// Tasks ahead of a queued one, by the index of the queue, and no more than are good for us.
const AHEAD: &str = "SELECT ( \
        SELECT count(*) FROM ( \
            SELECT FROM $schema.tasks AS ahead \
            WHERE ahead.status = 0 AND ahead.owner = '' AND ahead.executor IS NULL \
                AND ahead.not_before_ms IS NULL \
                AND (ahead.priority, ahead.seq) < (task.priority, task.seq) LIMIT $2 \
        ) AS found \
    ) FROM $schema.tasks AS task WHERE id = $1 AND status = 0 AND owner = '' \
        AND executor IS NULL AND not_before_ms IS NULL AND priority IS NOT NULL";

const WAITING: &str = "SELECT array(SELECT ( \
        SELECT count(*) FROM ( \
            SELECT FROM $schema.tasks \
            WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms IS NULL \
                AND priority = wanted LIMIT $1 \
        ) AS found \
    ) FROM generate_series(0, 3) AS wanted ORDER BY wanted), array(SELECT ( \
        SELECT state FROM $schema.tasks \
        WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms IS NULL \
            AND priority = wanted ORDER BY seq LIMIT 1 \
    ) FROM generate_series(0, 3) AS wanted)";

const COUNTS: &str = "SELECT counts FROM $schema.counts";

/// A parameter of a statement, with its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The name of the task of a row that begins with it.
pub(super) fn id(row: &Row) -> Result<TaskId, StoreError> {
    let name: &str = row.get(0);
    TaskId::new(name).map_err(|error| StoreError::Unusable(format!("a row is damaged: {error}")))
}

/// The state of a row that begins with name, version, owner, state, and the executor of a claim that is newer than
/// the state.
pub(super) fn state(row: &Row) -> Result<TaskState, StoreError> {
    let mut state = codec::read_state(&id(row)?, row.get::<_, &str>(3).as_bytes())?;
    // The columns have the last word: an adoption changes nothing else.
    state.version = u64::try_from(row.get::<_, i64>(1)).unwrap_or_default();
    state.owner = unescape(row.get(2)).into();
    if let Some(executor) = row.get::<_, Option<&str>>(4) {
        state.assign(unescape(executor).into());
    }
    Ok(state)
}

/// The task of a row that begins as that of a [`state`], and then has the spec.
pub(super) fn record(row: &Row) -> Result<TaskRecord, StoreError> {
    let id = id(row)?;
    let spec = Arc::new(codec::read_spec(&id, row.get::<_, &str>(5).as_bytes())?);
    Ok(TaskRecord { state: state(row)?, id, spec })
}

/// The tasks of rows that are from now on somebody's. One that can't be read is left out: it has an owner and
/// leaves the queue. If the transaction failed instead, it would keep all others in the queue as well.
pub(super) fn readable(rows: &[Row]) -> Vec<TaskRecord> {
    let read = |row: &Row| match record(row) {
        Ok(record) => Some(record),
        Err(error) => {
            let task: &str = row.get(0);
            tracing::error!(task, %error, "a task can't be read: nobody follows it any more");
            None
        }
    };
    rows.iter().filter_map(read).collect()
}

pub(super) async fn get(
    client: &Client,
    settings: &Settings,
    id: &TaskId,
) -> Result<Option<TaskRecord>, StoreError> {
    let statement = settings.schema.sql(GET);
    let row = client.query_typed_opt(&statement, &[(&id.as_str(), Type::TEXT)]).await;
    let row = row.map_err(|error| store_error(&settings.shown, &error))?;
    row.as_ref().map(record).transpose()
}

pub(super) async fn output(
    client: &Client,
    settings: &Settings,
    id: &TaskId,
) -> Result<Option<Vec<OutputChunk>>, StoreError> {
    let statement = settings.schema.sql(OUTPUT);
    let row = client.query_typed_opt(&statement, &[(&id.as_str(), Type::TEXT)]).await;
    let row = row.map_err(|error| store_error(&settings.shown, &error))?;
    row.map(|row| codec::read_output(id, row.get(0))).transpose()
}

pub(super) async fn list(
    client: &Client,
    settings: &Settings,
    query: &TaskQuery,
    before: i64,
) -> Result<TaskPage, StoreError> {
    let failed = |error| store_error(&settings.shown, &error);
    let limit = query.limit.min(PAGE_MAX) as i64;
    if limit == 0 {
        return Ok(TaskPage::default());
    }
    // A number of ours, not a text of somebody's.
    let status = query.status.map(|status| format!("AND status = {}", status_code(status)));
    let sql = |statement: &str, parameters: &[Parameter<'_>]| {
        // The client, if there is one, is the last parameter.
        let place = query.client.as_ref().map(|_| format!("AND client = ${}", parameters.len()));
        let statement = statement.replace("$status", status.as_deref().unwrap_or_default());
        settings.schema.sql(&statement.replace("$of_client", place.as_deref().unwrap_or_default()))
    };
    let of_client = query.client.as_deref();
    let of_client = || of_client.iter().map(|client| (client as _, Type::TEXT));
    let bytes_max = PAGE_BYTES_MAX as i64;
    let mut parameters: Vec<Parameter<'_>> =
        vec![(&before, Type::INT8), (&limit, Type::INT8), (&bytes_max, Type::INT8)];
    parameters.extend(of_client());
    let statement = sql(LIST, &parameters);
    let rows = client.query_typed(&statement, &parameters).await.map_err(failed)?;
    let tasks = rows.iter().map(record).collect::<Result<Vec<_>, _>>()?;
    let Some(last) = rows.last().map(|row| row.get::<_, i64>(6)) else {
        return Ok(TaskPage::default());
    };
    let mut parameters: Vec<Parameter<'_>> = vec![(&last, Type::INT8)];
    parameters.extend(of_client());
    let more = client.query_typed_opt(&sql(NEXT, &parameters), &parameters).await;
    let next = more.map_err(failed)?.map(|_| last.to_string());
    Ok(TaskPage { tasks, next })
}

pub(super) async fn counts(client: &Client, settings: &Settings) -> Result<[u64; 6], StoreError> {
    let rows = client.query_typed(&settings.schema.sql(COUNTS), &[]).await;
    let mut sums = [0_i64; 6];
    for row in rows.map_err(|error| store_error(&settings.shown, &error))? {
        let counts: Vec<i64> = row.get(0);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Ok(sums.map(|sum| u64::try_from(sum).unwrap_or_default()))
}

pub(super) async fn queue_position(
    client: &Client,
    settings: &Settings,
    id: &TaskId,
    ahead_max: i64,
) -> Result<Option<u64>, StoreError> {
    let statement = settings.schema.sql(AHEAD);
    let parameters: [Parameter<'_>; 2] = [(&id.as_str(), Type::TEXT), (&ahead_max, Type::INT8)];
    let row = client.query_typed_opt(&statement, &parameters).await;
    let row = row.map_err(|error| store_error(&settings.shown, &error))?;
    Ok(row.map(|row| u64::try_from(row.get::<_, i64>(0)).unwrap_or_default()))
}

pub(super) async fn queue_depth(
    client: &Client,
    settings: &Settings,
    count_max: i64,
) -> Result<QueueDepth, StoreError> {
    let statement = settings.schema.sql(WAITING);
    let row = client.query_typed(&statement, &[(&count_max, Type::INT8)]).await;
    let row = row.map_err(|error| store_error(&settings.shown, &error))?;
    let Some(row) = row.first() else { return Ok(QueueDepth::default()) };
    let mut depth = QueueDepth::default();
    let counts: Vec<i64> = row.get(0);
    for (waiting, count) in depth.waiting.iter_mut().zip(counts) {
        *waiting = u64::try_from(count).unwrap_or_default();
    }
    // A damaged text is told to whoever reads its task.
    let heads: Vec<Option<&str>> = row.get(1);
    let heads = heads.into_iter().flatten().map(serde_json::from_str::<TaskState>);
    depth.oldest_ms = heads.filter_map(Result::ok).map(|state| state.queued_ms).min();
    Ok(depth)
}
