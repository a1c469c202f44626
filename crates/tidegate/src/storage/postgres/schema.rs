use super::error::store_error;
use crate::storage::StoreError;
use tokio_postgres::{Client, Transaction};

/// Two programs that start at once take turns: any number will do, as long as it is always the same.
const LOCK: i64 = 0x7469_6465_6761_7465;

/// Name of a schema that needs no quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema(String);

// === impl Schema ===

impl Schema {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        (begins && name.len() <= 63 && name.bytes().all(fits)).then(|| Self(name.to_owned()))
    }

    #[cfg(test)]
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// The schema for tables of another kind.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Option<Self> {
        Self::named(&format!("{}_{suffix}", self.0))
    }

    /// A statement for this schema: `$schema` stands for its name.
    pub(crate) fn sql(&self, statement: &str) -> String {
        statement.replace("$schema", &self.0)
    }

    /// Makes the tables, or brings them up to what this program knows.
    ///
    /// `steps` make them; a database's version is how many of them it has seen. Steps are only ever added.
    pub(crate) async fn migrate(
        &self,
        client: &mut Client,
        shown: &str,
        steps: &[&str],
    ) -> Result<(), StoreError> {
        let failed = |error| store_error(shown, &error);
        let encoding = client.query_one("SHOW server_encoding", &[]).await.map_err(failed)?;
        if encoding.get::<_, &str>(0) != "UTF8" {
            return Err(StoreError::Unusable(format!(
                "{shown}: the database's encoding is {}: create one with ENCODING 'UTF8'",
                encoding.get::<_, &str>(0),
            )));
        }
        // Whoever may not make tables can still use those that are there.
        if self.version(client).await.map_err(failed)? == Some(steps.len()) {
            return Ok(());
        }
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
        // A step may read all rows; cut off in the middle, it would be cut off at each start.
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await.map_err(failed)?;
        self.step(&transaction, shown, steps).await?;
        transaction.commit().await.map_err(failed)
    }

    async fn step(
        &self,
        transaction: &Transaction<'_>,
        shown: &str,
        steps: &[&str],
    ) -> Result<(), StoreError> {
        let failed = |error| store_error(shown, &error);
        let found = self.version(transaction.client()).await.map_err(failed)?;
        if found.is_none() {
            self.refuse_foreign_tables(transaction, shown).await?;
        }
        let version = found.unwrap_or(0);
        if version > steps.len() {
            return Err(StoreError::Unusable(format!(
                "{shown}: schema {} is of version {version}, and this program knows {}: use a newer program, \
                 or another schema (?schema=NAME)",
                self.0,
                steps.len(),
            )));
        }
        for (done, step) in steps.iter().enumerate().skip(version) {
            transaction.batch_execute(&self.sql(step)).await.map_err(failed)?;
            let note = self.sql("INSERT INTO $schema.migrations (version) VALUES ($1)");
            transaction.execute(&note, &[&(done as i32 + 1)]).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn version(&self, client: &Client) -> Result<Option<usize>, tokio_postgres::Error> {
        // Not `to_regclass`, which goes by a cache: after waiting for the lock that may still say there is none.
        let asked = "SELECT EXISTS \
             (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'migrations')";
        let there: bool = client.query_one(asked, &[&self.0]).await?.get(0);
        if !there {
            return Ok(None);
        }
        let statement = self.sql("SELECT coalesce(max(version), 0) FROM $schema.migrations");
        let version: i32 = client.query_one(&statement, &[]).await?.get(0);
        Ok(Some(usize::try_from(version).unwrap_or_default()))
    }

    async fn refuse_foreign_tables(
        &self,
        transaction: &Transaction<'_>,
        shown: &str,
    ) -> Result<(), StoreError> {
        let statement = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
        let tables = transaction.query_one(statement, &[&self.0]).await;
        let tables: i64 = tables.map_err(|error| store_error(shown, &error))?.get(0);
        if tables == 0 {
            return Ok(());
        }
        Err(StoreError::Unusable(format!(
            "{shown}: schema {} has tables of another program: give another (?schema=NAME)",
            self.0,
        )))
    }
}
