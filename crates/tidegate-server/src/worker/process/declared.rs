use super::config::{Network, RuntimeConfig};
use crate::config::{NetworkUse, RuntimeEntry};

/// A runtime as its declaration has it, and as those that are found where it says nothing.
impl From<&RuntimeEntry> for RuntimeConfig {
    fn from(entry: &RuntimeEntry) -> Self {
        let mut runtime = match entry.name.as_str() {
            "python" => Self::python(),
            "sh" => Self::sh(),
            name => Self::new(name, &entry.command),
        };
        runtime.command.clone_from(&entry.command);
        runtime.args.clone_from(&entry.args);
        runtime.env.extend(entry.env.clone());
        if let Some(extension) = &entry.extension {
            runtime.extension.clone_from(extension);
        }
        runtime.timeout_max = entry.timeout_max.unwrap_or(runtime.timeout_max);
        runtime.memory_bytes_max = entry.memory_bytes_max.unwrap_or(runtime.memory_bytes_max);
        runtime.processes_max = entry.processes_max.unwrap_or(runtime.processes_max);
        runtime.cpu_s_max = entry.cpu_s_max.unwrap_or(runtime.cpu_s_max);
        runtime.file_bytes_max = entry.file_bytes_max.unwrap_or(runtime.file_bytes_max);
        runtime.network = match entry.network {
            NetworkUse::Deny => Network::Deny,
            NetworkUse::Fail => Network::Fail,
            NetworkUse::Allow => Network::Allow,
        };
        runtime
    }
}
