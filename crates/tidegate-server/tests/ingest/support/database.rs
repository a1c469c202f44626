use crate::shared::postgres::Postgres;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_postgres::{Client, NoTls};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A schema of a test's own in a real PostgreSQL.
pub struct Database {
    server: Arc<Postgres>,
    schema: String,
}

/// A connection by which it can be held up.
pub struct Blocker {
    client: Client,
    lock: String,
}

/// Nobody else reads or writes until this is lifted or dropped.
pub struct Blocked(Blocker);

impl Database {
    pub fn shared() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { server: Postgres::shared(), schema: format!("ingest_{number}") }
    }

    pub fn url(&self) -> String {
        self.server.url(&format!("schema={}", self.schema))
    }

    /// Holds up everything that the store does from now on. Its tables must be there.
    pub async fn block(&self) -> Blocked {
        self.blocker().await.block().await
    }

    /// Who can hold it up without having to connect first.
    pub async fn blocker(&self) -> Blocker {
        let url = self.server.url("sslmode=disable");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let tables = ["records", "sums", "senders"].map(|name| format!("{}.{name}", self.schema));
        let lock = format!("BEGIN; LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
        Blocker { client, lock }
    }
}

impl Blocker {
    pub async fn block(self) -> Blocked {
        self.client.batch_execute(&self.lock).await.unwrap();
        Blocked(self)
    }
}

impl Blocked {
    pub async fn lift(self) -> Blocker {
        self.0.client.batch_execute("ROLLBACK").await.unwrap();
        self.0
    }
}
