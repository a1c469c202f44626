use crate::banner::{Ports, Sandbox, chat_line};
use std::fmt::{self, Write as _};
use tidegate_server::config::{Config, LimitSetting, masked};
use tidegate_server::node::Node;
use tidegate_server::routing::BusyThresholds;
use tidegate_server::tasks::execution::CapacityReport;

/// Start banner of `tidegate up`: addresses, upstreams, limits and examples.
pub struct Banner<'a> {
    node: &'a Node,
    config: &'a Config,
    /// Capacity of the executor in this process.
    capacity: Option<&'a CapacityReport>,
}

// === impl Banner ===

impl<'a> Banner<'a> {
    pub fn of(node: &'a Node, capacity: Option<&'a CapacityReport>) -> Self {
        Self { node, config: node.gateway().config(), capacity }
    }

    fn data_url(&self) -> String {
        let scheme = if self.config.listen.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.node.gateway().address())
    }

    fn upstreams(&self) -> String {
        let mut lines = String::new();
        if self.node.gateway().control().is_demo() {
            lines.push_str(
                "none configured: using 2 MOCK inference servers; set yours with --upstream URL",
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
            "{} requests in flight: high {}, normal {}, low {}; critical is never refused",
            limits.global_limit, limits.high, limits.normal, limits.low
        )
    }
}

impl Banner<'_> {
    /// Writes the lines about tasks.
    fn tasks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tasks = &self.config.tasks;
        writeln!(
            f,
            "  tasks      stored in {}, placement {}: `tidegate submit`, POST /v1/tasks",
            masked(&tasks.store),
            tasks.placement
        )?;
        if tasks.slot_ledger != "memory" {
            writeln!(f, "  slots      counted in {}", masked(&tasks.slot_ledger))?;
        }
        for url in &tasks.executors {
            writeln!(f, "  executor   {url}")?;
        }
        let Some(capacity) = self.capacity else { return Ok(()) };
        let runtimes = match capacity.runtimes.is_empty() {
            true => "any runtime".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        let slots = capacity.max_concurrent;
        writeln!(f, "  executor   in this process: {slots} slots, {runtimes}")?;
        write!(f, "{}", Sandbox(&capacity.sandbox))
    }

    /// The limit of each upstream.
    fn limit(&self) -> String {
        let routing = &self.config.routing;
        let own = self.config.upstreams.iter().filter(|upstream| upstream.limit.is_some()).count();
        let mut text = match routing.limit {
            LimitSetting::Auto => "found by itself (--limit N to set it)".to_owned(),
            LimitSetting::Fixed(limit) => format!("{limit} requests at each upstream"),
            LimitSetting::Off => "off: upstreams are sent everything (--limit auto)".to_owned(),
        };
        if own > 0 {
            // Writing to a String can't fail.
            let _ = write!(text, "; {own} upstreams have their own");
        }
        text
    }

    /// Conditions under which an upstream is busy.
    fn busy(&self) -> String {
        let BusyThresholds { active_decode_blocks, active_prefill_tokens, active_requests } =
            self.config.routing.thresholds;
        let checks = [
            active_decode_blocks.map(|ratio| format!("more than {ratio} of its KV blocks in use")),
            active_prefill_tokens.map(|tokens| format!("more than {tokens} prefill tokens")),
            active_requests.map(|requests| format!("{requests} requests")),
        ];
        let checks: Vec<_> = checks.into_iter().flatten().collect();
        match (checks.is_empty(), self.config.routing.models.len()) {
            (true, 0) => "never: no threshold is set (--busy-preset)".to_owned(),
            (true, models) => format!("by model: {models} models have thresholds"),
            (false, _) => format!("an upstream with {}", checks.join(" or ")),
        }
    }
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (data, admin) =
            (self.data_url(), format!("http://{}", self.node.gateway().admin_address()));
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
        writeln!(f, "  limit      {}", self.limit())?;
        writeln!(f, "  busy       {}", self.busy())?;
        if let Some(view) = self.node.ingest() {
            write!(f, "{}", Ports { view, config: &self.config.ingest })?;
        }
        if self.node.tasks().is_some() {
            self.tasks(f)?;
        }
        if self.config.dry_run {
            writeln!(f, "  dry run    no request is refused; /metrics counts would-be refusals")?;
        }
        writeln!(f)?;
        writeln!(f, "Try:")?;
        writeln!(f, "  curl -i{insecure} {data}/hello")?;
        writeln!(f, "  curl -i{insecure} -H 'tidegate-priority: low' {data}/hello")?;
        if self.node.gateway().control().is_demo() {
            writeln!(f, "  {}", chat_line(insecure, &data, "tidegate-mock"))?;
        }
        writeln!(f, "  curl -s {admin}/v1/stats")?;
        if self
            .capacity
            .is_some_and(|capacity| capacity.runtimes.iter().any(|runtime| runtime == "sh"))
        {
            writeln!(f, "  tidegate submit --runtime sh --code 'echo hello' --wait")?;
        }
        writeln!(f)?;
        write!(f, "Ctrl-C drains and stops; a second Ctrl-C stops at once.")
    }
}
