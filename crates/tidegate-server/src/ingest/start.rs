use super::connections::Connections;
use super::listen::listen;
use super::retention::retain_forever;
use super::sender_tokens::SenderTokens;
use super::serve::SenderContext;
use super::stop::Stop;
use super::view::IngestView;
use crate::config::{Config, IngestConfig};
use crate::http::tls::{PortFiles, TlsPort, TlsSetupErrors, reload_forever};
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::frame::FrameLimits;
use tidegate::line_protocol::LineConfig;
use tidegate::pipeline::{Back, Front, Pipeline, PipelineConfig, PipelineConfigError, Protocol};
use tidegate::store::{AnyStore, SeriesLimits, Store, StoreError};
use tidegate::tariff::{TariffFile, TariffFileError, Tariffs};
use tidegate::window::WindowConfig;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Where usage records come in: a running pipeline and its ports. Ends when it is [shut
/// down](Ingest::shutdown) or dropped; a drop does not wait.
pub struct Ingest {
    view: Arc<IngestView>,
    stop: watch::Sender<Stop>,
    threads: Vec<JoinHandle<()>>,
    tls: Vec<Arc<TlsPort>>,
}

/// A thread whose end before a stop is a failure.
#[derive(Clone)]
struct Watched {
    failed: Arc<AtomicBool>,
    stopping: watch::Receiver<Stop>,
}

/// The ingestion could not start. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A port is taken, or may not be used.
    #[error(
        "can't listen on {address}: {source}; is another process using it? Choose another with {key}"
    )]
    Bind {
        /// Where it should have listened.
        address: SocketAddr,
        /// The setting that changes it.
        key: &'static str,
        /// Why it can't.
        source: io::Error,
    },
    /// The store can't be opened.
    #[error("{0}; choose another with --store")]
    Store(#[from] StoreError),
    /// The tariffs can't be read, or are wrong.
    #[error("{0}")]
    Tariffs(#[from] TariffFileError),
    /// The windows can't be as configured.
    #[error("ingest: {0}")]
    Pipeline(#[from] PipelineConfigError),
    /// TLS files of the ports are missing or wrong.
    #[error(transparent)]
    Tls(#[from] TlsSetupErrors),
    /// The system gave no thread or no runtime.
    #[error("the system refused a thread or a socket: {0}")]
    System(#[from] io::Error),
}

/// The outcome of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All that was taken in is stored and acknowledged.
    All,
    /// The grace time was over before; what was not acknowledged will be sent again by its sender.
    Cut,
}

// === impl Ingest ===

impl Ingest {
    /// Opens the store, binds the ports and starts the threads.
    ///
    /// # Errors
    ///
    /// When a port, the store or the tariffs can't be had, or the system refuses. Nothing is left running.
    pub fn start(config: &Config) -> Result<Self, IngestError> {
        Self::start_through(config, |store| store)
    }

    /// The same with something of the caller's between the pipeline and the store, which is what it writes to and
    /// reads senders' numbers from. Sums of usage and retention ask the store itself.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub fn start_through<S: Store>(
        config: &Config,
        through: impl FnOnce(Arc<AnyStore>) -> Arc<S>,
    ) -> Result<Self, IngestError> {
        let access = Arc::new(SenderTokens::new(&config.claims, &config.ingest));
        let config = &config.ingest;
        let ports_tls = ports_tls(config)?;
        let tls = ports_tls.iter().flatten().cloned().collect();
        let frames = bind(config.frames_address, "ingest.frames_address")?;
        let lines = bind(config.lines_address, "ingest.lines_address")?;
        let addresses = (frames.local_addr()?, lines.local_addr()?);
        let tariffs = read_tariffs(config.tariffs.as_ref())?;
        let (runtime, store) = open_store(config)?;
        let pipeline_config =
            PipelineConfig { access: Arc::clone(&access) as _, ..pipeline_config(config) };
        let (pipeline, front, back) =
            Pipeline::new(pipeline_config, through(Arc::clone(&store)), tariffs.clone())?;
        let connections = Arc::new(Connections::default());
        let (stop, stopping) = watch::channel(Stop::No);
        let view = pipeline.view();
        let context = SenderContext {
            entrance: pipeline.into_entrance(),
            connections: Arc::clone(&connections),
            connections_max: config.connections_max,
            idle_timeout: config.idle_timeout,
            write_timeout: config.write_timeout,
            access,
            stopping: stopping.clone(),
        };
        let tariffs = tariffs.specs().len();
        let view = IngestView::new(addresses, view, connections, Arc::clone(&store), tariffs);
        let watched = Watched { failed: view.failed(), stopping: stopping.clone() };
        let retention = config.retention;
        let back = thread::Builder::new().name("tidegate-price".to_owned()).spawn({
            let watched = watched.clone();
            move || watched.run(runtime, run_back(back, store, retention))
        })?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let front = thread::Builder::new().name("tidegate-ingest".to_owned()).spawn(move || {
            watched.run(runtime, run_front(front, (frames, lines), ports_tls, context));
        })?;
        Ok(Self { view: Arc::new(view), stop, threads: vec![front, back], tls })
    }

    /// The view for the control plane.
    #[must_use]
    pub fn view(&self) -> &Arc<IngestView> {
        &self.view
    }

    /// TLS of its ports, for metrics.
    pub(crate) fn tls(&self) -> &[Arc<TlsPort>] {
        &self.tls
    }

    /// Takes no more, stores and acknowledges what it has within the grace time, and waits for the end.
    pub fn shutdown(self, grace: Duration) -> Flushed {
        self.stop.send_replace(Stop::Drain);
        let (done, finished) = std::sync::mpsc::sync_channel(1);
        let waiting = thread::spawn(move || {
            // One that panicked has logged it, and has left what it held.
            let panicked =
                self.threads.into_iter().filter_map(|thread| thread.join().err()).count();
            let _ = done.send(panicked == 0);
        });
        let flushed = match finished.recv_timeout(grace) {
            Ok(true) if !self.view.has_failed() => Flushed::All,
            _ => Flushed::Cut,
        };
        self.stop.send_replace(Stop::Now);
        let _ = waiting.join();
        flushed
    }
}

/// Opens the store within the runtime that will use it. On a thread of its own: this one may be one of a runtime,
/// which must not be held up by another.
fn open_store(config: &IngestConfig) -> Result<(Runtime, Arc<AnyStore>), IngestError> {
    let open = || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let store = runtime.block_on(AnyStore::open(&config.store))?;
        let limits =
            SeriesLimits { per_source: config.series_per_sender_max, total: config.series_max };
        Ok((runtime, Arc::new(store.limited(limits))))
    };
    let opened = thread::scope(|scope| scope.spawn(open).join());
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// TLS of the ports of the ingestion.
pub(crate) fn ports_tls(
    config: &IngestConfig,
) -> Result<[Option<Arc<TlsPort>>; 2], TlsSetupErrors> {
    let port = |name, files| PortFiles { name, files, protocols: &[] };
    let (frames, lines) = (config.frames_tls.as_ref(), config.lines_tls.as_ref());
    TlsPort::load([port("frames", frames), port("lines", lines)])
}

async fn run_front(
    front: Front,
    (frames, lines): (StdTcpListener, StdTcpListener),
    ports_tls: [Option<Arc<TlsPort>>; 2],
    context: SenderContext,
) {
    tokio::spawn(reload_forever(ports_tls.iter().flatten().cloned().collect()));
    let [frames_tls, lines_tls] = ports_tls;
    match (TcpListener::from_std(frames), TcpListener::from_std(lines)) {
        (Ok(frames), Ok(lines)) => {
            let listening = (
                listen(frames, Protocol::Frames, context.clone(), frames_tls),
                listen(lines, Protocol::Lines, context, lines_tls),
            );
            tokio::join!(listening.0, listening.1, front.run());
        }
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the ingestion's ports can't be served");
        }
    }
}

async fn run_back<S: Store>(back: Back<S>, store: Arc<AnyStore>, retention: Option<Duration>) {
    tokio::select! {
        () = back.run() => {}
        () = retain_forever(&store, retention) => {}
    }
}

// === impl Watched ===

impl Watched {
    /// Works until there is nothing more to do or no more time for it. What a blocked disk still holds is not
    /// waited for.
    fn run(self, runtime: Runtime, work: impl Future<Output = ()>) {
        let mut stopping = self.stopping.clone();
        runtime.block_on(async {
            tokio::select! {
                () = work => {}
                _ = stopping.wait_for(|stop| *stop == Stop::Now) => {}
            }
        });
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

/// Also when its thread panics: a pipeline that lost a part of it must not say that it is well.
impl Drop for Watched {
    fn drop(&mut self) {
        if *self.stopping.borrow() == Stop::No {
            self.failed.store(true, Ordering::Release);
            tracing::error!("a thread of the ingestion ended: nothing more is stored; restart it");
        }
    }
}

/// A port of its own, ready for a runtime.
pub(super) fn bind(address: SocketAddr, key: &'static str) -> Result<StdTcpListener, IngestError> {
    let listener = StdTcpListener::bind(address).map_err(|source| IngestError::Bind {
        address,
        key,
        source,
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn read_tariffs(path: Option<&PathBuf>) -> Result<Arc<Tariffs>, IngestError> {
    let Some(path) = path else { return Ok(Arc::new(Tariffs::none())) };
    let file = TariffFile::read(path)?;
    for warning in file.warnings(unix_ns()) {
        tracing::warn!(file = %path.display(), "tariffs: {warning}");
    }
    Ok(Arc::clone(file.tariffs()))
}

fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn pipeline_config(config: &IngestConfig) -> PipelineConfig {
    PipelineConfig {
        law: config.law,
        windows: WindowConfig {
            window_min: config.window_slots_min,
            window_max: config.window_slots_max,
            budget_bytes: config.memory_bytes,
            ..WindowConfig::default()
        },
        frames: FrameLimits {
            // At most 16 MiB.
            frame_bytes_max: config.frame_bytes_max as u32,
            ..FrameLimits::default()
        },
        lines: LineConfig {
            tenant_tag: config.tenant_tag.clone(),
            precision: config.line_precision,
            ..LineConfig::default()
        },
        line_bytes_max: config.line_bytes_max,
        ..PipelineConfig::default()
    }
}
