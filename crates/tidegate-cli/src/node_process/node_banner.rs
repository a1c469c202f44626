use super::node_role::NodeRole;
use crate::admin_client::TOKEN_VARIABLE;
use crate::banner::{EarlierStore, Ports, Sandbox, State, chat_line, curl_flags};
use std::fmt::{self, Write as _};
use tidegate_server::cluster::Cluster;
use tidegate_server::config::{Anonymous, Config, LimitSetting, TlsFiles, masked};
use tidegate_server::node::Node;
use tidegate_server::routing::BusyThresholds;
use tidegate_server::tasks::execution::CapacityReport;
use tidegate_server::tasks::manager::TaskNode;

/// Admin port that commands ask without `--admin`.
const DEFAULT_ADMIN: &str = "http://127.0.0.1:8001";

/// Start banner of a node: addresses, upstreams, limits and examples.
pub struct Banner<'a> {
    node: &'a Node,
    config: &'a Config,
    role: NodeRole,
    /// Capacity of the executor in this process.
    capacity: Option<&'a CapacityReport>,
    earlier: &'a [EarlierStore],
    cluster: Option<&'a Cluster>,
}

// === impl Banner ===

impl<'a> Banner<'a> {
    pub fn of(
        node: &'a Node,
        role: NodeRole,
        capacity: Option<&'a CapacityReport>,
        earlier: &'a [EarlierStore],
    ) -> Self {
        Self { node, config: node.gateway().config(), role, capacity, earlier, cluster: None }
    }

    /// The banner of a node of a cluster.
    pub fn of_cluster(self, cluster: Option<&'a Cluster>) -> Self {
        Self { cluster, ..self }
    }

    fn data_url(&self) -> String {
        let scheme = if self.config.listen.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.node.gateway().address())
    }

    fn admin_url(&self) -> String {
        let scheme = if self.config.listen.admin_tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.node.gateway().admin_address())
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
        if let Some(sealed) = self.node.tasks().and_then(TaskNode::sealed_elsewhere) {
            writeln!(f, "  WARNING    {sealed}")?;
        }
        if tasks.slot_ledger != "memory" {
            writeln!(f, "  slots      counted in {}", masked(&tasks.slot_ledger))?;
        }
        for executor in &tasks.executors {
            writeln!(f, "  executor   {}", executor.url)?;
        }
        self.workers(f)?;
        let Some(capacity) = self.capacity else { return Ok(()) };
        let runtimes = match capacity.runtimes.is_empty() {
            true => "any runtime".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        let slots = capacity.max_concurrent;
        writeln!(f, "  executor   in this process: {slots} slots, {runtimes}")?;
        write!(f, "{}", Sandbox(&capacity.sandbox))
    }

    /// Writes the port for workers, and the command that starts one.
    fn workers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(address) = self.node.tasks().and_then(|tasks| tasks.workers_address()) else {
            return Ok(());
        };
        let workers = &self.config.workers;
        if workers.node_certificates {
            return writeln!(
                f,
                "  workers    {address}, nodes of the cluster: `tidegate cluster token worker`"
            );
        }
        let token = if workers.identities.iter().all(|it| it.token.is_none()) {
            ""
        } else {
            "TIDEGATE_TOKEN=... "
        };
        let ca = if workers.tls.is_some() { " --ca ca.pem" } else { "" };
        let command = format!("{token}tidegate worker --manager {address}{ca}");
        writeln!(f, "  workers    {address}, none connected yet; on each machine run:")?;
        writeln!(f, "             {command}")
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
        let (data, admin) = (self.data_url(), self.admin_url());
        writeln!(f, "tidegate {} is {}", env!("CARGO_PKG_VERSION"), self.role.name())?;
        writeln!(f)?;
        writeln!(f, "  clients    {data}")?;
        let usage = if self.node.ingest().is_some() { " /v1/usage" } else { "" };
        let tasks = if self.node.tasks().is_some() { " /v1/tasks" } else { "" };
        writeln!(
            f,
            "  operators  {admin}  (/health/live /health/ready /metrics /v1/stats{usage}{tasks} /busy_threshold)"
        )?;
        if self.role != NodeRole::Manager {
            let name = if self.role == NodeRole::Gate { "managers " } else { "upstreams" };
            writeln!(f, "  {name}  {}", self.upstreams())?;
        }
        if let Some(cluster) = self.cluster {
            let node = cluster.node();
            writeln!(f, "  member     {} of cell {}: `tidegate members`", node.node, node.cell)?;
        }
        writeln!(f, "  limits     {}", self.limits())?;
        if self.role != NodeRole::Manager {
            writeln!(f, "  limit      {}", self.limit())?;
            writeln!(f, "  busy       {}", self.busy())?;
        }
        if self.node.ingest().is_some() || self.node.tasks().is_some() {
            write!(f, "{}", State { config: self.config, earlier: self.earlier })?;
        }
        match self.node.ingest() {
            None if self.role != NodeRole::All => {}
            Some(view) => write!(f, "{}", Ports { view, config: &self.config.ingest })?,
            None => {
                writeln!(f, "  ingest     off: takes in no usage records (--ingest to turn it on)")?
            }
        }
        match self.node.tasks() {
            Some(_) => self.tasks(f)?,
            None if self.config.tasks.forwarded => {
                writeln!(f, "  tasks      forwarded to the managers: POST /v1/tasks")?
            }
            None => writeln!(f, "  tasks      off: runs no code (--tasks to turn them on)")?,
        }
        if self.config.dry_run {
            writeln!(f, "  dry run    no request is refused; /metrics counts would-be refusals")?;
        }
        writeln!(f)?;
        self.examples(f, &data, &admin)?;
        writeln!(f)?;
        write!(f, "Ctrl-C drains and stops; a second Ctrl-C stops at once.")
    }
}

impl Banner<'_> {
    /// Writes commands to try.
    fn examples(&self, f: &mut fmt::Formatter<'_>, data: &str, admin: &str) -> fmt::Result {
        let refuses = self.config.claims.anonymous == Anonymous::Refuse;
        let tls = self.config.listen.tls.as_ref();
        let flags = curl_flags(tls.is_some(), asks(tls), refuses.then_some(TOKEN_VARIABLE));
        writeln!(f, "Try:")?;
        if self.role == NodeRole::All {
            writeln!(f, "  curl -i{flags} {data}/hello")?;
            writeln!(f, "  curl -i{flags} -H 'tidegate-priority: low' {data}/hello")?;
        }
        if self.node.gateway().control().is_demo() {
            writeln!(f, "  {}", chat_line(&flags, data, "tidegate-mock"))?;
        }
        let tls = self.config.listen.admin_tls.as_ref();
        let needs_token = !self.config.claims.operators.is_empty();
        let flags = curl_flags(tls.is_some(), asks(tls), needs_token.then_some(TOKEN_VARIABLE));
        writeln!(f, "  curl -s{flags} {admin}/v1/stats")?;
        if self
            .capacity
            .is_some_and(|capacity| capacity.runtimes.iter().any(|runtime| runtime == "sh"))
        {
            let ca = if tls.is_some() { " --ca ca.pem" } else { "" };
            let own = if asks(tls) { " --cert me.pem --cert-key me.key" } else { "" };
            let node =
                if admin == DEFAULT_ADMIN { "" } else { &format!(" --admin {admin}{ca}{own}") };
            writeln!(f, "  tidegate submit{node} --runtime sh --code 'echo hello' --wait")?;
        }
        Ok(())
    }
}

/// True when a port asks its callers for a certificate.
fn asks(tls: Option<&TlsFiles>) -> bool {
    tls.is_some_and(|files| files.client_ca.is_some())
}
