use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tidegate::rng::Rng;
use tidegate_server::tasks::session::{Lane, PREAMBLE_BYTES};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// Pieces of a connection that are on their way, each of at most 16 KiB.
const ON_THE_WAY_MAX: usize = 256;
const PIECE_BYTES: usize = 16 << 10;

/// A network between workers and a manager that fails by order, each lane for itself. On a thread of its own.
pub struct Relay {
    pub address: SocketAddr,
    lanes: Arc<[LaneFaults; 2]>,
    _stop: oneshot::Sender<()>,
}

/// Faults of a lane.
struct LaneFaults {
    refuses: AtomicBool,
    frozen: watch::Sender<bool>,
    delay_ms: AtomicU64,
    /// Pieces of a thousand that are lost.
    lost: AtomicU64,
    /// Random streams so far, one for each connection and way.
    streams: AtomicU64,
    /// Pieces that were lost, each time counted.
    losses: AtomicU64,
    /// Rises with each cut.
    cuts: watch::Sender<u64>,
    /// Rises with each cut that the manager does not notice.
    half_cuts: watch::Sender<u64>,
    opened: AtomicUsize,
}

// === impl Relay ===

impl Relay {
    /// A relay without faults.
    pub fn start(manager: SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let lanes = Arc::new([LaneFaults::new(), LaneFaults::new()]);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Arc::clone(&lanes);
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept_forever(listener, manager, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, lanes, _stop: stop }
    }

    fn lane(&self, lane: Lane) -> &LaneFaults {
        &self.lanes[index(lane)]
    }

    /// Closes all connections of a lane.
    pub fn cut(&self, lane: Lane) {
        self.lane(lane).cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Closes all connections of a lane at the worker; the manager sees them open, and hears nothing of them.
    pub fn half_cut(&self, lane: Lane) {
        self.lane(lane).half_cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Closes new connections of a lane at once.
    pub fn refuse(&self, lane: Lane) {
        self.lane(lane).refuses.store(true, Ordering::SeqCst);
    }

    /// Reads nothing more from either side.
    pub fn freeze(&self, lane: Lane) {
        self.lane(lane).frozen.send_replace(true);
    }

    /// Delays each byte of a lane by so long, each way.
    pub fn delay(&self, lane: Lane, delay: Duration) {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap();
        self.lane(lane).delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// Loses so many of a thousand pieces of a lane, each way, as a peer over TCP sees it: the piece comes when it
    /// has been sent again, after 200 ms and twice as long for each time that it is lost again, and everything
    /// after it waits. From a fixed seed.
    pub fn lose(&self, lane: Lane, of_1000: u64) {
        self.lane(lane).lost.store(of_1000, Ordering::SeqCst);
    }

    /// Ends refusals, freezes, delays and losses of both lanes.
    pub fn heal(&self) {
        for lane in &*self.lanes {
            lane.refuses.store(false, Ordering::SeqCst);
            lane.delay_ms.store(0, Ordering::SeqCst);
            lane.lost.store(0, Ordering::SeqCst);
            lane.frozen.send_replace(false);
        }
    }

    /// Freezes both lanes, also new connections: neither side is told.
    pub fn swallow(&self) {
        for lane in [Lane::Control, Lane::Data] {
            self.freeze(lane);
        }
    }

    /// Cuts and refuses both lanes.
    pub fn cut_off(&self) {
        for lane in [Lane::Control, Lane::Data] {
            self.refuse(lane);
            self.cut(lane);
        }
    }

    /// Losses of both lanes since the start.
    pub fn losses(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.losses.load(Ordering::SeqCst)).sum()
    }

    /// Connections of a lane since the start.
    pub fn opened(&self, lane: Lane) -> usize {
        self.lane(lane).opened.load(Ordering::SeqCst)
    }
}

fn index(lane: Lane) -> usize {
    match lane {
        Lane::Control => 0,
        Lane::Data => 1,
    }
}

// === impl LaneFaults ===

impl LaneFaults {
    fn new() -> Self {
        Self {
            refuses: AtomicBool::new(false),
            frozen: watch::Sender::new(false),
            delay_ms: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            cuts: watch::Sender::new(0),
            half_cuts: watch::Sender::new(0),
            opened: AtomicUsize::new(0),
        }
    }

    /// Time until a piece that is lost has been sent again; 0 for most.
    fn lost_for_ms(&self, rng: &Rng) -> u64 {
        const TIMEOUT_MS: u64 = 200;
        let lost = self.lost.load(Ordering::SeqCst) as f64 / 1_000.0;
        let (mut waited_ms, mut next_ms) = (0, TIMEOUT_MS);
        while rng.fraction() < lost && next_ms <= 8 * TIMEOUT_MS {
            self.losses.fetch_add(1, Ordering::SeqCst);
            (waited_ms, next_ms) = (waited_ms + next_ms, 2 * next_ms);
        }
        waited_ms
    }
}

async fn accept_forever(listener: TcpListener, manager: SocketAddr, lanes: Arc<[LaneFaults; 2]>) {
    loop {
        if let Ok((worker, _)) = listener.accept().await {
            tokio::spawn(serve(worker, manager, Arc::clone(&lanes)));
        }
    }
}

async fn serve(mut worker: TcpStream, manager: SocketAddr, lanes: Arc<[LaneFaults; 2]>) {
    let mut preamble = [0; PREAMBLE_BYTES];
    if worker.read_exact(&mut preamble).await.is_err() {
        return;
    }
    let lane = &lanes[index(Lane::of_preamble(preamble).unwrap_or(Lane::Control))];
    let (mut cuts, mut half_cuts) = (lane.cuts.subscribe(), lane.half_cuts.subscribe());
    if lane.refuses.load(Ordering::SeqCst) {
        return;
    }
    let Ok(mut manager) = TcpStream::connect(manager).await else { return };
    if manager.write_all(&preamble).await.is_err() {
        return;
    }
    let _ = (worker.set_nodelay(true), manager.set_nodelay(true));
    lane.opened.fetch_add(1, Ordering::SeqCst);
    let is_half_cut = {
        let (from_worker, to_worker) = worker.split();
        let (from_manager, to_manager) = manager.split();
        let up = pump(from_worker, to_manager, lane);
        let down = pump(from_manager, to_worker, lane);
        tokio::select! {
            _ = async { tokio::join!(up, down) } => false,
            _ = cuts.changed() => false,
            _ = half_cuts.changed() => true,
        }
    };
    if is_half_cut {
        drop(worker);
        let _ = cuts.changed().await;
    }
}

/// Carries bytes one way.
async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, lane: &LaneFaults) {
    let (pieces, mut due) = mpsc::channel::<(Instant, Vec<u8>)>(ON_THE_WAY_MAX);
    let mut frozen = lane.frozen.subscribe();
    let rng = Rng::stream(Some(7), lane.streams.fetch_add(1, Ordering::SeqCst));
    let reading = async move {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let _ = frozen.wait_for(|frozen| !frozen).await;
            let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
            // A freeze that began meanwhile holds these back too.
            let _ = frozen.wait_for(|frozen| !frozen).await;
            let delay_ms = lane.delay_ms.load(Ordering::SeqCst) + lane.lost_for_ms(&rng);
            let at = Instant::now() + Duration::from_millis(delay_ms);
            if pieces.send((at, buffer[..read].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((at, piece)) = due.recv().await {
            sleep_until(at).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(reading, writing);
}
