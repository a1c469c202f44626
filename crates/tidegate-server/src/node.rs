//! A node: gateway, ingestion and tasks in one process, put together.
//! Uses every other module.
//! No other module knows it.

use crate::cluster::{Cluster, MemberWorkers, MembersExtension, Membership, MembershipError};
use crate::config::Config;
use crate::gateway::{Drained, Gateway, GatewayError, NodeParts};
use crate::http::{Extension, TlsSetupErrors, check_tls_files};
use crate::ingest::{Flushed, Ingest, IngestError, IngestExtension, IngestView};
use crate::tasks::api::{SubmissionSettings, TaskApi, TasksOff};
use crate::tasks::manager::{HubMembers, TaskNode, TaskNodeError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate::task::TaskLimits;

/// A running node. Ends when it is [shut down](Node::shutdown) or dropped; a drop does not wait.
pub struct Node {
    gateway: Gateway,
    ingest: Option<Ingest>,
    tasks: Option<TaskNode>,
    membership: Option<Arc<Membership>>,
    grace: Duration,
}

/// Membership of a node in a cluster.
pub struct NodeCluster {
    /// The cluster, by the node's folder.
    pub cluster: Arc<Cluster>,
    /// Called once if the name of this node belongs to another, with the error.
    pub on_refused: Box<dyn FnOnce(String) + Send>,
}

/// The outcome of a node's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeDrained {
    /// The outcome of the gateway's.
    pub gateway: Drained,
    /// The outcome of the ingestion's, if it was on; `None` also when it panicked.
    pub ingest: Option<Flushed>,
    /// True if a part panicked on its way.
    pub panicked: bool,
}

/// A node could not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// TLS files are missing or wrong.
    #[error(transparent)]
    Tls(#[from] TlsSetupErrors),
    /// The gateway could not start.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The ingestion could not start.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The manager of tasks could not start.
    #[error(transparent)]
    Tasks(#[from] TaskNodeError),
    /// Membership could not start.
    #[error(transparent)]
    Membership(#[from] MembershipError),
}

// === impl Node ===

impl Node {
    /// Starts the parts that the configuration enables. `demo` marks its upstreams as mocks of a demonstration.
    ///
    /// # Errors
    ///
    /// When one of them can't start. Nothing is left running.
    pub fn start(config: Config, demo: bool) -> Result<Self, NodeError> {
        Self::start_in(config, demo, None)
    }

    /// The same for a node of a cluster.
    ///
    /// # Errors
    ///
    /// When one of the parts can't start. Nothing is left running.
    pub fn start_in(
        config: Config,
        demo: bool,
        cluster: Option<NodeCluster>,
    ) -> Result<Self, NodeError> {
        // Each part would report its own alone.
        check_tls_files(&config)?;
        let grace = config.listen.shutdown_grace;
        let ingest = match config.ingest.enabled {
            true => Some(Ingest::start(&config)?),
            false => None,
        };
        let tasks = match config.tasks.enabled {
            true => {
                let port = config.listen.admin_address.port();
                let (tasks, workers) = (&config.tasks, &config.workers);
                let cluster = cluster.as_ref().map(|cluster| &*cluster.cluster);
                Some(TaskNode::start(tasks, workers, cluster, port, grace)?)
            }
            false => None,
        };
        let mut tls = ingest.as_ref().map(Ingest::tls).unwrap_or_default().to_vec();
        tls.extend(tasks.as_ref().and_then(TaskNode::workers_tls).cloned());
        let view = ingest.as_ref().map(|ingest| Arc::clone(ingest.view()));
        let mut extensions: Vec<Arc<dyn Extension>> = vec![Arc::new(IngestExtension::new(view))];
        match &tasks {
            Some(tasks) => extensions.push(Arc::new(task_api(tasks, &config))),
            None if config.tasks.forwarded => {}
            None => extensions.push(Arc::new(TasksOff)),
        }
        let member = match cluster {
            Some(cluster) => Some(join_members(cluster, tasks.as_ref())?),
            None => None,
        };
        if let Some((cluster, membership)) = &member {
            let hub = tasks.as_ref().and_then(TaskNode::workers).cloned();
            let workers = hub.map(|hub| Box::new(HubMembers::new(hub)) as Box<dyn MemberWorkers>);
            let (cluster, membership) = (Arc::clone(cluster), Arc::clone(membership));
            extensions.push(Arc::new(MembersExtension::new(cluster, membership, workers)));
        }
        let is_tls = config.listen.tls.is_some();
        let gateway = Gateway::start_with(config, NodeParts { extensions, demo, tls })?;
        if let Some((cluster, membership)) = &member
            && let Some(url) = cluster.node().clients_url(gateway.address(), is_tls)
        {
            cluster.set_clients(membership, &url);
        }
        let membership = member.map(|(_, membership)| membership);
        Ok(Self { gateway, ingest, tasks, membership, grace })
    }

    /// The members of the cluster, if the node is in one.
    #[must_use]
    pub fn membership(&self) -> Option<&Arc<Membership>> {
        self.membership.as_ref()
    }

    /// The gateway.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The ingestion, if it is on.
    #[must_use]
    pub fn ingest(&self) -> Option<&Arc<IngestView>> {
        self.ingest.as_ref().map(Ingest::view)
    }

    /// The manager of tasks, if tasks are on.
    #[must_use]
    pub fn tasks(&self) -> Option<&TaskNode> {
        self.tasks.as_ref()
    }

    /// Shuts all parts down at once, each with the whole grace time, and waits for the end.
    pub fn shutdown(self) -> NodeDrained {
        let Self { gateway, ingest, tasks, membership, grace } = self;
        let flushing = thread::spawn(move || ingest.map(|ingest| ingest.shutdown(grace)));
        let finishing = thread::spawn(move || tasks.map(TaskNode::shutdown));
        let gateway = gateway.shutdown();
        let (flushed, finished) = (flushing.join(), finishing.join());
        if let Some(membership) = membership {
            membership.stop();
        }
        let panicked = flushed.is_err() || finished.is_err();
        NodeDrained { gateway, ingest: flushed.ok().flatten(), panicked }
    }
}

/// Starts membership, and drains the workers that were drained before a restart.
fn join_members(
    cluster: NodeCluster,
    tasks: Option<&TaskNode>,
) -> Result<(Arc<Cluster>, Arc<Membership>), MembershipError> {
    let NodeCluster { cluster, on_refused } = cluster;
    if let Some(hub) = tasks.and_then(TaskNode::workers) {
        let drained = cluster.drains().into_iter().filter(|drain| drain.draining);
        drained.for_each(|drain| hub.begin_drained(&drain.node));
    }
    let membership = cluster.start(on_refused)?;
    Ok((cluster, membership))
}

fn task_api(tasks: &TaskNode, config: &Config) -> TaskApi {
    let limits =
        TaskLimits { code_bytes_max: config.tasks.code_bytes_max, ..TaskLimits::default() };
    let timeout_ms = u64::try_from(config.tasks.timeout.as_millis()).unwrap_or(u64::MAX);
    let settings = SubmissionSettings { limits, timeout_ms };
    TaskApi::new(tasks.handle().clone(), settings, config.proxy.stream_idle_timeout)
        .with_meters(Arc::clone(tasks.meters()))
        .with_workers(tasks.workers().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::fake_manager::{FakeManager, view};
    use std::net::SocketAddr;
    use std::time::Instant;
    use tidegate::task::TaskStatus;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    fn config() -> Config {
        let mut config = Config::default();
        config.listen.address = "127.0.0.1:0".parse().unwrap();
        config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
        config.listen.threads = 1;
        config
    }

    /// Reads from a socket until a text has arrived.
    async fn read_until(socket: &mut TcpStream, wanted: &str) -> String {
        let mut all = String::new();
        let mut buffer = [0; 4096];
        while !all.contains(wanted) {
            let read = timeout(Duration::from_secs(30), socket.read(&mut buffer)).await;
            let read = read.expect("bytes arrive").unwrap();
            assert!(read > 0, "it ended before {wanted:?}: {all}");
            all += &String::from_utf8_lossy(&buffer[..read]);
        }
        all
    }

    async fn connect(address: SocketAddr, path: &str) -> TcpStream {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        socket
    }

    #[tokio::test]
    async fn a_watcher_of_a_task_keeps_its_connection_on_either_port() {
        let fake = FakeManager::start();
        let mut config = config();
        config.listen.header_timeout = Duration::from_millis(100);
        let stall_max = config.proxy.stream_idle_timeout;
        let api = TaskApi::new(fake.handle(), SubmissionSettings::default(), stall_max);
        let parts = NodeParts { extensions: vec![Arc::new(api)], ..NodeParts::default() };
        let gateway = Gateway::start_with(config, parts).unwrap();
        for (id, address) in [("a", gateway.address()), ("b", gateway.admin_address())] {
            fake.put(view(id));
            // A head that arrives too late, because this thread was suspended, is sent again.
            let mut socket = loop {
                let start = Instant::now();
                let socket = connect(address, &format!("/v1/tasks/{id}/events")).await;
                if matches!(socket.peek(&mut [0; 1]).await, Ok(1..)) {
                    break socket;
                }
                assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
            };
            let head = read_until(&mut socket, "\"status\":\"queued\"").await;
            assert!(head.contains("text/event-stream"), "{head}");
            // Longer than any quiet connection lives.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut over = view(id);
            over.status = TaskStatus::Succeeded;
            fake.put(over);
            read_until(&mut socket, "\"status\":\"succeeded\"").await;
        }
    }

    #[tokio::test]
    async fn without_tasks_their_paths_are_proxied() {
        let gateway = Gateway::start(config()).unwrap();
        let mut admin = connect(gateway.admin_address(), "/v1/tasks").await;
        let admin = read_until(&mut admin, "unknown_path").await;
        assert!(admin.starts_with("HTTP/1.1 404") && admin.contains("admin port"), "{admin}");
        let issued = || gateway.metrics().issued;
        let mut data = connect(gateway.address(), "/v1/tasks").await;
        read_until(&mut data, "\r\n\r\n").await;
        assert_eq!(issued(), 1, "it was proxied");
    }
}
