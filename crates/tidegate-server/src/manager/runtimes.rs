use crate::worker::CapacityReport;
use tidegate::capacity::{RuntimeId, Serves};

/// Names of runtimes are few: declared by executors, or of tasks that were accepted when somebody had declared
/// them.
const NAMES_MAX: usize = 4_096;
/// For all names beyond that. Nobody serves it.
const NOBODYS: RuntimeId = RuntimeId(u16::MAX);

/// Numbers for the names of runtimes.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    names: Vec<String>,
}

// === impl Runtimes ===

impl Runtimes {
    /// The number of a name.
    pub fn id(&mut self, name: &str) -> RuntimeId {
        let known = self.names.iter().position(|it| it == name);
        let at = known.unwrap_or_else(|| {
            if self.names.len() < NAMES_MAX {
                self.names.push(name.to_owned());
            }
            self.names.len() - 1
        });
        match self.names.get(at).is_some_and(|it| it == name) {
            true => RuntimeId(u16::try_from(at).unwrap_or(u16::MAX)),
            false => NOBODYS,
        }
    }

    /// What an executor serves, by its own word.
    pub fn serves(&mut self, report: &CapacityReport) -> Serves {
        match report.runtimes.is_empty() {
            true => Serves::All,
            false => Serves::Only(report.runtimes.iter().map(|name| self.id(name)).collect()),
        }
    }
}
