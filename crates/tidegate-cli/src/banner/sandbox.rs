use std::fmt;
use tidegate_server::tasks::execution::SandboxLayer;

/// Banner lines of the sandbox, one for each layer.
pub struct Sandbox<'a>(pub &'a [SandboxLayer]);

// === impl Sandbox ===

impl fmt::Display for Sandbox<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "  sandbox    none: no code runs on this machine");
        }
        for (nth, layer) in self.0.iter().enumerate() {
            let title = if nth == 0 { "sandbox" } else { "" };
            let state = if layer.active { "active" } else { "NOT ACTIVE" };
            writeln!(f, "  {title:<9}  {} {state}: {}", layer.layer, layer.detail)?;
        }
        Ok(())
    }
}
