use super::env_key::EnvKey;
use std::collections::BTreeSet;
use std::fmt;
use tidegate::store::StoreError;
use tidegate::task::TaskStatus;
use tidegate::tasks::{TaskQuery, TaskStore};

/// Tasks that are read at once, and at most: enough to notice a lost key, however long the queue is.
const PAGE: usize = 100;
const READ_MAX: usize = 1_000;

/// Queued tasks whose environments another key has sealed: this manager can't open them, and they fail when they
/// start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedElsewhere {
    tasks: usize,
    own: String,
    others: BTreeSet<String>,
}

// === impl SealedElsewhere ===

impl SealedElsewhere {
    /// Looks for such tasks among the newest queued ones; `None` if there are none.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn find(store: &impl TaskStore, key: &EnvKey) -> Result<Option<Self>, StoreError> {
        let mut found = Self { tasks: 0, own: key.id().to_owned(), others: BTreeSet::new() };
        let status = Some(TaskStatus::Queued);
        let mut query = TaskQuery { status, client: None, after: None, limit: PAGE };
        for _ in 0..READ_MAX / PAGE {
            let page = store.list(&query).await?;
            for task in &page.tasks {
                if let Some(other) = key.other_key_of(&task.spec.env) {
                    found.tasks += 1;
                    found.others.insert(other.to_owned());
                }
            }
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        Ok((found.tasks > 0).then_some(found))
    }
}

impl fmt::Display for SealedElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tasks, own, others } = self;
        let others: Vec<_> = others.iter().map(String::as_str).collect();
        write!(
            f,
            "{tasks} queued tasks have an env sealed with the key {}, and tasks.env_key_file has {own}: they fail \
             when they start; stop the node and restore that key, or submit them again",
            others.join(", ")
        )
    }
}
