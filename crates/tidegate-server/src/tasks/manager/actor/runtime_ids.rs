use crate::tasks::execution::CapacityReport;
use tidegate::capacity::{ExecutorRuntimes, RuntimeId};

/// Most names. They are few: executors declare them, and tasks are accepted for declared runtimes alone.
const NAMES_MAX: usize = 4_096;
/// Id of every name beyond the limit. No executor serves it.
const UNSERVED: RuntimeId = RuntimeId(u16::MAX);

/// Ids of runtimes, by name.
#[derive(Debug, Default)]
pub(super) struct RuntimeIds {
    names: Vec<String>,
}

// === impl RuntimeIds ===

impl RuntimeIds {
    /// The id of a name; a new name gets the next one.
    pub(super) fn id(&mut self, name: &str) -> RuntimeId {
        let known = self.names.iter().position(|known| known == name);
        if known.is_none() && self.names.len() >= NAMES_MAX {
            return UNSERVED;
        }
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        RuntimeId(u16::try_from(at).unwrap_or(u16::MAX))
    }

    /// The name of an id.
    pub(super) fn name(&self, id: RuntimeId) -> Option<&str> {
        self.names.get(usize::from(id.0)).map(String::as_str)
    }

    /// The runtimes that an executor reports.
    pub(super) fn serves(&mut self, report: &CapacityReport) -> ExecutorRuntimes {
        match report.runtimes.is_empty() {
            true => ExecutorRuntimes::All,
            false => {
                ExecutorRuntimes::Only(report.runtimes.iter().map(|name| self.id(name)).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_ids_and_those_beyond_the_limit_are_unserved() {
        let mut ids = RuntimeIds::default();
        let first = ids.id("sh");
        for nth in 1..NAMES_MAX {
            assert_ne!(ids.id(&format!("r{nth}")), UNSERVED);
        }
        assert_eq!((ids.id("one more"), ids.id("sh")), (UNSERVED, first));
    }
}
