use super::ingest::Ports;
use super::mock::chat_line;
use super::worker::Sandbox;
use std::fmt::{self, Write as _};
use tidegate_server::config::Config;
use tidegate_server::gateway::Gateway;
use tidegate_server::routing::BusyThresholds;
use tidegate_server::worker::CapacityReport;

/// What `tidegate up` prints once it listens: where, in front of what, and what to try next.
pub struct Banner<'a> {
    gateway: &'a Gateway,
    config: &'a Config,
    /// Of the executor in this process.
    capacity: Option<&'a CapacityReport>,
}

// === impl Banner ===

impl<'a> Banner<'a> {
    pub fn of(gateway: &'a Gateway, capacity: Option<&'a CapacityReport>) -> Self {
        Self { gateway, config: &gateway.shared().config, capacity }
    }

    fn data_url(&self) -> String {
        let scheme = if self.config.listen.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.gateway.address())
    }

    fn upstreams(&self) -> String {
        let mut lines = String::new();
        if self.gateway.shared().demo {
            lines.push_str(
                "none given, so two MOCKS of inference servers answer; give yours with --upstream URL",
            );
        }
        for target in &self.config.upstreams {
            let gap = if lines.is_empty() { "" } else { "\n             " };
            // Writing to a String can't fail.
            let _ = write!(lines, "{gap}{}", target.url());
        }
        lines
    }

    fn limits(&self) -> String {
        let limits = &self.config.admission.limits;
        format!(
            "{} at once: high {}, normal {}, low {}; critical is never refused",
            limits.global_limit, limits.high, limits.normal, limits.low
        )
    }
}

impl Banner<'_> {
    /// Who runs tasks, and behind what.
    fn tasks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = &self.config.tasks;
        writeln!(
            f,
            "  tasks      kept in {}, placed by {}: `tidegate submit`, POST /v1/tasks",
            tasks.store_shown(),
            tasks.placement
        )?;
        if tasks.ledger != "memory" {
            writeln!(f, "  slots      counted in {}", tasks.ledger_shown())?;
        }
        for url in &tasks.executors {
            writeln!(f, "  executor   {url}")?;
        }
        let Some(capacity) = self.capacity else { return Ok(()) };
        let runtimes = match capacity.runtimes.is_empty() {
            true => "anything".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        let slots = capacity.max_concurrent;
        writeln!(f, "  executor   in this process: {slots} at once, {runtimes}")?;
        write!(f, "{}", Sandbox(&capacity.sandbox))
    }

    /// When workers count as busy.
    fn busy(&self) -> String {
        let BusyThresholds { active_decode_blocks, active_prefill_tokens, active_requests } =
            self.config.routing.thresholds;
        let checks = [
            active_decode_blocks.map(|ratio| format!("KV blocks above {ratio}")),
            active_prefill_tokens.map(|tokens| format!("prefill tokens above {tokens}")),
            active_requests.map(|requests| format!("{requests} requests")),
        ];
        let checks: Vec<_> = checks.into_iter().flatten().collect();
        match (checks.is_empty(), self.config.routing.models.len()) {
            (true, 0) => {
                "workers are never too busy: no threshold is set (--busy-preset)".to_owned()
            }
            (true, models) => format!("by model, for {models}"),
            (false, _) => format!("a worker with {}", checks.join(" or ")),
        }
    }
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (data, admin) = (self.data_url(), format!("http://{}", self.gateway.admin_address()));
        let insecure = if self.config.listen.tls.is_some() { " -k" } else { "" };
        writeln!(f, "tidegate {} is up", env!("CARGO_PKG_VERSION"))?;
        writeln!(f)?;
        writeln!(f, "  clients    {data}")?;
        writeln!(
            f,
            "  operators  {admin}  (/health/live /health/ready /metrics /v1/stats /v1/usage /v1/tasks /busy_threshold)"
        )?;
        writeln!(f, "  upstreams  {}", self.upstreams())?;
        writeln!(f, "  limits     {}", self.limits())?;
        writeln!(f, "  busy       {}", self.busy())?;
        if let Some(view) = self.gateway.shared().ingest.as_deref() {
            write!(f, "{}", Ports { view, config: &self.config.ingest })?;
        }
        if self.gateway.shared().tasks.is_some() {
            self.tasks(f)?;
        }
        if self.config.dry_run {
            writeln!(f, "  dry run    nothing is refused; /metrics counts what would have been")?;
        }
        writeln!(f)?;
        writeln!(f, "Try:")?;
        writeln!(f, "  curl -i{insecure} {data}/hello")?;
        writeln!(f, "  curl -i{insecure} -H 'tidegate-priority: low' {data}/hello")?;
        if self.gateway.shared().demo {
            writeln!(f, "  {}", chat_line(insecure, &data, "tidegate-mock"))?;
        }
        writeln!(f, "  curl -s {admin}/v1/stats")?;
        if self.capacity.is_some_and(|it| it.runtimes.iter().any(|runtime| runtime == "sh")) {
            writeln!(f, "  tidegate submit --runtime sh --code 'echo hello' --wait")?;
        }
        writeln!(f)?;
        write!(f, "Ctrl-C finishes what is under way and stops; a second one stops at once.")
    }
}
