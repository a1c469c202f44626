use super::executor;
use super::flags::{Tls, WorkerFlags};
use super::report::{refuse, report};
use crate::banner::Sandbox;
use crate::failure::Failure;
use crate::settings_flags::SettingFlags;
use crate::shutdown::UntilSignal;
use crate::{cluster_node, logging};
use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{Cluster, NodeRecord, node_tls};
use tidegate_server::config::{LogConfig, LogFormat};
use tidegate_server::tasks::execution::CapacityReport;
use tidegate_server::tasks::executor::ExecutorConfig;
use tidegate_server::tasks::worker::{
    ManagerTarget, SessionWorker, SessionWorkerError, WorkerLinkView, WorkerSettings,
};

/// Wait for the first connection before the banner.
const FIRST_LINK: Duration = Duration::from_secs(5);

/// Start banner of a worker that dials its manager.
struct Banner<'a> {
    manager: &'a ManagerTarget,
    member: Option<&'a NodeRecord>,
    link: WorkerLinkView,
    capacity: CapacityReport,
}

/// Runs a worker that dials its manager, until a signal ends it.
pub fn run(flags: &WorkerFlags, manager: &ManagerTarget) -> Result<ExitCode, Failure> {
    let manager = with_tls(flags, manager.clone())?;
    let token = flags.link.token.as_ref().map(|token| token.expose().to_owned());
    let token = token.filter(|token| !token.is_empty());
    serve(flags, executor::config(flags), (manager, token), None)
}

/// The node of a cluster that a worker is, if it joins now or has joined. A worker that listens is none.
pub fn cluster(flags: &WorkerFlags) -> Result<Option<Arc<Cluster>>, Failure> {
    if flags.listen.is_some() {
        return Ok(None);
    }
    let folder = flags.state_folder.as_ref().map(|folder| folder.to_string_lossy());
    let settings = folder.iter().fold(SettingFlags::default(), |settings, folder| {
        settings.with("--state-folder", "state_folder", folder)
    });
    let folder = cluster_node::state_folder(flags.process.config.as_deref(), &settings)?;
    cluster_node::open(MemberRole::Worker, folder.as_deref(), &flags.join)
}

/// Runs a worker that is a node of a cluster, until a signal ends it.
pub fn run_in(flags: &WorkerFlags, cluster: Arc<Cluster>) -> Result<ExitCode, Failure> {
    let node = cluster.node();
    if flags.executor_id.as_ref().is_some_and(|id| *id != node.node) {
        let name = &node.node;
        return Err(Failure::Usage(format!(
            "--executor-id: given, and this node is {name} by its certificate; leave it out"
        )));
    }
    let manager = node.manager.as_ref().map(|manager| manager.workers.parse::<ManagerTarget>());
    let Some(Ok(manager)) = manager else {
        let missing = "the node has no manager; remove its folder, and let it join again";
        return Err(Failure::Runtime(missing.to_owned()));
    };
    let tls = node_tls(cluster.folder(), &node.cell).map_err(cluster_node::node_failure)?;
    let executor = ExecutorConfig { id: node.node.clone(), ..executor::config(flags) };
    let manager = manager.with_tls(Some(tls));
    serve(flags, executor, (manager, None), Some(&cluster))
}

fn serve(
    flags: &WorkerFlags,
    executor: ExecutorConfig,
    (manager, token): (ManagerTarget, Option<String>),
    cluster: Option<&Cluster>,
) -> Result<ExitCode, Failure> {
    refuse(&executor.errors())?;
    logging::start(&LogConfig { level: flags.log_level.clone(), format: LogFormat::Text })?;
    // First, so that no signal is lost and none ends the search for runtimes.
    let until_signal = UntilSignal::listen()?;
    let runner = executor::runner(flags)?;
    let start = |cluster: &Cluster| cluster.start(cluster_node::exit_when_refused);
    let membership = cluster.map(start).transpose().map_err(Failure::runtime)?;
    let settings = WorkerSettings { manager: manager.clone(), token, executor };
    let worker = SessionWorker::start(settings, runner).map_err(|error| match error {
        SessionWorkerError::Config(error) => Failure::Usage(format!("--{error}")),
        SessionWorkerError::System(_) => Failure::Runtime(error.to_string()),
    })?;
    let link = worker.wait_for_link(FIRST_LINK);
    if let (true, Some(error)) = (link.is_refused, &link.error) {
        return Err(Failure::Runtime(error.clone()));
    }
    let member = cluster.map(Cluster::node);
    let banner = Banner { manager: &manager, member, link, capacity: worker.executor().capacity() };
    // A closed standard output is no reason to stop.
    let _ = writeln!(io::stdout(), "{banner}");
    let grace = Duration::from_millis(flags.grace_ms);
    let pulse = worker.pulse();
    let drain = move || {
        let code = report(worker.shutdown(grace));
        if let Some(membership) = membership {
            membership.stop();
        }
        code
    };
    Ok(until_signal.then(grace, move || pulse.silence(), drain))
}

/// TLS is the default beyond this machine, where a token must not be shown to the network.
fn with_tls(flags: &WorkerFlags, manager: ManagerTarget) -> Result<ManagerTarget, Failure> {
    let is_wanted = flags.link.tls.is_given() || !manager.is_loopback();
    match is_wanted && flags.access.tls != Tls::Off {
        true => Ok(manager.with_tls(Some(flags.link.tls.client()?))),
        false => Ok(manager),
    }
}

// === impl Banner ===

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { manager, member, link, capacity } = self;
        let runtimes = match capacity.runtimes.is_empty() {
            true => "any runtime".to_owned(),
            false => capacity.runtimes.join(", "),
        };
        writeln!(f, "tidegate {} is worker {}", env!("CARGO_PKG_VERSION"), capacity.executor_id)?;
        writeln!(f)?;
        match (&link.manager, &link.error) {
            (Some(name), _) => writeln!(f, "  manager    {manager}, connected to {name}")?,
            (None, Some(error)) => {
                writeln!(f, "  manager    {manager}, NOT connected: {error}; trying again")?
            }
            (None, None) => writeln!(f, "  manager    {manager}, connecting")?,
        }
        if let Some(node) = member {
            writeln!(f, "  member     {} of cell {}", node.node, node.cell)?;
        }
        writeln!(f, "  slots      {}", capacity.max_concurrent)?;
        writeln!(f, "  runs       {runtimes} (executor: {})", capacity.kind)?;
        write!(f, "{}", Sandbox(&capacity.sandbox))?;
        writeln!(f)?;
        write!(f, "Ctrl-C drains and stops; a second Ctrl-C stops at once.")
    }
}
