use super::consumer::consume_forever;
use super::control::{check_node, serve_control, terms, welcome};
use super::data::take_data;
use super::hub::WorkerHub;
use super::joining::{JOIN_TIMEOUT, JOINING_MAX, Joining, JoiningPlaces};
use super::roster::WORKERS_MAX;
use crate::cluster::JOIN_PREAMBLE;
use crate::http::port::AcceptErrors;
use crate::http::tls::{PeerCertificate, TlsPort, reload_forever};
use crate::http::wire;
use crate::tasks::session::{
    FrameReader, FrameWriter, Join, Lane, PREAMBLE_BYTES, SessionError, SessionStream,
};
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener, TcpStream as StdTcpStream};
use std::sync::Arc;
use std::thread;
use tidegate::frame::FrameKind;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Most connections at once: two for each worker, and those that have not joined.
const CONNECTIONS_MAX: usize = 2 * WORKERS_MAX + JOINING_MAX;
/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4_096;
/// Data connections on their way to their thread.
const HANDED_OVER_MAX: usize = 256;

/// Port that workers dial.
pub struct SessionPort {
    listener: StdTcpListener,
    address: SocketAddr,
    tls: Option<Arc<TlsPort>>,
}

/// The port can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("can't listen on {address} for workers: {source}; choose another with --workers-listen")]
pub struct SessionPortError {
    address: SocketAddr,
    source: io::Error,
}

/// A connection that has named its lane.
struct Dialled {
    tcp: StdTcpStream,
    peer: SocketAddr,
    joining: Joining,
    permit: OwnedSemaphorePermit,
}

// === impl SessionPort ===

impl SessionPort {
    /// Opens the port.
    ///
    /// # Errors
    ///
    /// When the address is unavailable.
    pub fn bind(address: SocketAddr, tls: Option<Arc<TlsPort>>) -> Result<Self, SessionPortError> {
        let bind = || {
            let listener = StdTcpListener::bind(address)?;
            // After a restart of the manager all workers dial at once.
            socket2::SockRef::from(&listener).listen(BACKLOG)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) = bind().map_err(|source| SessionPortError { address, source })?;
        Ok(Self { listener, address, tls })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves workers: control connections on the current runtime, data connections on a thread of their own.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub(in crate::tasks::manager) fn serve(self, hub: Arc<WorkerHub>) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listener)?;
        let (data, dialled) = mpsc::channel(HANDED_OVER_MAX);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (data_hub, data_tls) = (Arc::clone(&hub), self.tls.clone());
        thread::Builder::new()
            .name("tidegate-progress".to_owned())
            .spawn(move || runtime.block_on(serve_data(data_hub, dialled, data_tls)))?;
        if let Some(tls) = &self.tls {
            tokio::spawn(reload_forever(vec![Arc::clone(tls)]));
        }
        tokio::spawn(accept_forever(listener, hub, self.tls, data));
        Ok(())
    }
}

async fn accept_forever(
    listener: TcpListener,
    hub: Arc<WorkerHub>,
    tls: Option<Arc<TlsPort>>,
    data: mpsc::Sender<Dialled>,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let places = JoiningPlaces::default();
    let mut errors = AcceptErrors::new("workers");
    loop {
        // Closed only with the port.
        let Ok(permit) = Arc::clone(&slots).acquire_owned().await else { return };
        let Some(place) = places.free().await else { return };
        match listener.accept().await {
            Ok((tcp, peer)) => {
                let (hub, tls, data) = (Arc::clone(&hub), tls.clone(), data.clone());
                let joining = place.taken();
                tokio::spawn(async move {
                    let served = receive(hub, tls, data, (tcp, peer), joining, permit).await;
                    if let Err(error) = served {
                        tracing::debug!(%peer, %error, "a worker's connection ended");
                    }
                });
            }
            Err(error) => errors.pause_after(&error).await,
        }
    }
}

/// Reads the lane of a connection, serves a control connection, and hands a data connection over.
async fn receive(
    hub: Arc<WorkerHub>,
    tls: Option<Arc<TlsPort>>,
    data: mpsc::Sender<Dialled>,
    (mut tcp, peer): (TcpStream, SocketAddr),
    mut joining: Joining,
    permit: OwnedSemaphorePermit,
) -> Result<(), SessionError> {
    wire::prepare(&tcp)?;
    let mut preamble = [0; PREAMBLE_BYTES];
    joining.in_time(async { Ok(tcp.read_exact(&mut preamble).await?) }).await?;
    match Lane::of_preamble(preamble) {
        Some(Lane::Control) => {
            let served = serve_lane(&hub, tls, Lane::Control, (tcp, peer), joining).await;
            drop(permit);
            served
        }
        Some(Lane::Data) => {
            let tcp = tcp.into_std()?;
            // Fails only while the process ends.
            let _ = data.send(Dialled { tcp, peer, joining, permit }).await;
            Ok(())
        }
        None => match &hub.settings.desk {
            Some(desk) if preamble == JOIN_PREAMBLE => {
                joining.in_time(async { Ok(desk.serve(tcp, peer).await?) }).await
            }
            _ => {
                tracing::debug!(%peer, "no worker: expected `tidegate worker --manager`");
                Ok(())
            }
        },
    }
}

async fn serve_data(
    hub: Arc<WorkerHub>,
    mut dialled: mpsc::Receiver<Dialled>,
    tls: Option<Arc<TlsPort>>,
) {
    tokio::spawn(consume_forever(Arc::clone(&hub)));
    while let Some(Dialled { tcp, peer, joining, permit }) = dialled.recv().await {
        let (hub, tls) = (Arc::clone(&hub), tls.clone());
        tokio::spawn(async move {
            let served = match TcpStream::from_std(tcp) {
                Ok(tcp) => serve_lane(&hub, tls, Lane::Data, (tcp, peer), joining).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = served {
                tracing::debug!(%peer, %error, "a worker's data connection ended");
            }
            drop(permit);
        });
    }
}

async fn serve_lane(
    hub: &Arc<WorkerHub>,
    tls: Option<Arc<TlsPort>>,
    lane: Lane,
    (tcp, peer): (TcpStream, SocketAddr),
    mut joining: Joining,
) -> Result<(), SessionError> {
    let (join, reader, mut writer, certificate) = joining.in_time(read_join(tls, tcp)).await?;
    let worker: String = join.worker.chars().take(64).collect();
    // Membership is Critical: counted, and never shed.
    let admitted = hub.stats.tracker.try_acquire(FrameKind::Join.class().priority());
    let welcomed = check_node(hub.settings.nodes.as_ref(), certificate.as_ref(), &join.worker)
        .and_then(|proof| welcome(hub, lane, join, (peer, certificate.as_ref()), proof));
    drop(admitted);
    match welcomed {
        Err(unwelcome) => {
            tracing::warn!(%peer, worker, reason = unwelcome.reason(), "a worker was refused");
            joining.in_time(writer.send(FrameKind::Join, &unwelcome.answer())).await
        }
        Ok((session, id)) => {
            drop(joining);
            let mut reader = reader.joined();
            match lane {
                Lane::Control => {
                    tracing::info!(%peer, worker, "worker connected");
                    let served = serve_control(hub, &session, id, reader, writer).await;
                    let reason = served.as_ref().err().map(ToString::to_string);
                    tracing::info!(%peer, worker, reason, "worker disconnected");
                    served
                }
                Lane::Data => {
                    writer.send(FrameKind::Join, &terms(hub, id)).await?;
                    take_data(hub, &session, id, &mut reader, &mut writer).await
                }
            }
        }
    }
}

/// Handshake and first frame of a connection, with the certificate of the worker if it has one.
async fn read_join(
    tls: Option<Arc<TlsPort>>,
    tcp: TcpStream,
) -> Result<(Join, FrameReader, FrameWriter, Option<PeerCertificate>), SessionError> {
    let mut certificate = None;
    let stream: Box<dyn SessionStream> = match tls {
        None => Box::new(tcp),
        Some(tls) => match tls.accept(tcp, JOIN_TIMEOUT).await {
            Some(stream) => {
                certificate = PeerCertificate::of(stream.get_ref().1);
                Box::new(stream)
            }
            None => return Err(SessionError::Closed),
        },
    };
    let (read, write) = tokio::io::split(stream);
    let (mut reader, writer) = (FrameReader::joining(read), FrameWriter::new(write));
    let join = reader.next_of::<Join>(FrameKind::Join).await?;
    Ok((join, reader, writer, certificate))
}
