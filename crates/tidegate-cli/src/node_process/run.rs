use super::node_banner::Banner;
use super::node_role::NodeRole;
use crate::banner::EarlierStore;
use crate::cluster_node::{exit_when_refused, gate_presets, manager_presets};
use crate::failure::Failure;
use crate::settings_flags::SettingFlags;
use crate::shutdown::{self, UntilSignal};
use crate::{config_loader, descriptor_limit, logging};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tidegate_server::cluster::Cluster;
use tidegate_server::config::{Config, Scheme, UpstreamTarget};
use tidegate_server::file_mode;
use tidegate_server::gateway::Drained;
use tidegate_server::node::{Node, NodeCluster, NodeDrained, NodeError};
use tidegate_server::tasks::manager::TaskNode;
use tidegate_testkit::mock::{Mock, MockConfig};

/// Names of the mock upstreams.
const DEMO: [&str; 2] = ["mock-1", "mock-2"];

/// Serves a node until a signal ends it.
pub fn run(
    role: NodeRole,
    file: Option<&Path>,
    settings: &SettingFlags,
) -> Result<ExitCode, Failure> {
    run_in(role, file, settings, None)
}

/// Serves a node of a cluster until a signal ends it.
pub fn run_in(
    role: NodeRole,
    file: Option<&Path>,
    settings: &SettingFlags,
    cluster: Option<Arc<Cluster>>,
) -> Result<ExitCode, Failure> {
    let of_cluster = cluster.as_deref().map(|cluster| match role {
        NodeRole::Gate => gate_presets(cluster),
        NodeRole::Manager | NodeRole::All => manager_presets(cluster),
    });
    let of_cluster = of_cluster.unwrap_or_default();
    let mut presets = role.presets().to_vec();
    presets.extend(of_cluster.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let sourced = config_loader::load_node(file, settings, &presets)?;
    let config = sourced.loaded.config;
    logging::start(&config.log)?;
    match &sourced.file {
        Some(path) => tracing::info!(file = %path.display(), "configured"),
        None => tracing::info!("configured without a file"),
    }
    serve(config, role, cluster)
}

fn serve(
    mut config: Config,
    role: NodeRole,
    cluster: Option<Arc<Cluster>>,
) -> Result<ExitCode, Failure> {
    let grace = config.listen.shutdown_grace;
    file_mode::close_new_files();
    // Before anything starts, so that no signal is lost.
    let until_signal = UntilSignal::listen()?;
    let clients = config.listen.connections_max + config.listen.connections_reserve;
    descriptor_limit::raise(clients + config.ingest.connections_max);
    let demo = match role {
        NodeRole::All => start_demo(&mut config)?,
        NodeRole::Manager | NodeRole::Gate => Vec::new(),
    };
    let earlier = EarlierStore::find(&config, config.ingest.enabled, config.tasks.enabled);
    EarlierStore::warn(&earlier);
    let state_folder = config.state_folder.clone();
    let member = cluster
        .clone()
        .map(|cluster| NodeCluster { cluster, on_refused: Box::new(exit_when_refused) });
    let node = Node::start_in(config, !demo.is_empty(), member)
        .map_err(|error| not_started(error, state_folder.as_deref()))?;
    let capacity = node.tasks().and_then(TaskNode::capacity);
    // A closed standard output is no reason to stop.
    let _ = writeln!(
        io::stdout(),
        "{}",
        Banner::of(&node, role, capacity.as_ref(), &earlier).of_cluster(cluster.as_deref())
    );
    let pulse = node.gateway().pulse();
    Ok(until_signal.then(
        grace,
        move || pulse.silence(),
        move || {
            let code = report(node.shutdown());
            drop(demo);
            code
        },
    ))
}

/// Starts two mock inference servers if no upstream is configured.
fn start_demo(config: &mut Config) -> Result<Vec<Mock>, Failure> {
    if !config.upstreams.is_empty() {
        return Ok(Vec::new());
    }
    let start = |name: &&str| Mock::start(MockConfig::small(name));
    let mocks: Vec<Mock> =
        DEMO.iter().map(start).collect::<io::Result<_>>().map_err(Failure::runtime)?;
    config.upstreams.extend(mocks.iter().map(|mock| UpstreamTarget {
        name: mock.address().to_string(),
        scheme: Scheme::Http,
        host: mock.address().ip().to_string(),
        port: mock.address().port(),
        models: None,
        limit: None,
        limit_preset: None,
        api_key: None,
    }));
    Ok(mocks)
}

fn not_started(error: NodeError, state_folder: Option<&Path>) -> Failure {
    let failure = match error {
        NodeError::Ingest(error) => error.into(),
        NodeError::Tls(errors) => Failure::Usage(errors.to_string()),
        error => Failure::runtime(error),
    };
    match (failure, state_folder) {
        // The folder may come from the environment, so its flag is not known to everybody.
        (Failure::Runtime(message), Some(folder))
            if message.contains(&*folder.to_string_lossy()) =>
        {
            let folder = folder.display();
            Failure::Runtime(format!(
                "{message}; make the state folder {folder} usable, or choose another with --state-folder"
            ))
        }
        (failure, _) => failure,
    }
}

fn report(drained: NodeDrained) -> ExitCode {
    match drained.gateway {
        Drained { cut: 0 } => tracing::info!("drained: all requests in flight have finished"),
        Drained { cut } => tracing::warn!(cut, "grace time exceeded: connections were cut off"),
    }
    match drained.ingest.map_or(ExitCode::SUCCESS, shutdown::flushed) {
        code if !drained.panicked => code,
        _ => ExitCode::FAILURE,
    }
}
