use crate::support::{MACHINE, Wire, gateway, median, request, upstream};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::interval;

const LIMITS: &str = "[admission]\nglobal_limit = 100\nhigh_limit = 50\nnormal_limit = 30\nlow_limit = 20\ncritical_reserve = 0\n";
const PROBES: usize = 300;
const ROUNDS: usize = 9;

static PROBE: LazyLock<Vec<u8>> = LazyLock::new(|| request("GET", "/health/live", "normal"));

/// Fills every place, keeps refused load coming, and probes. Rounds with and without the load alternate, so
/// that a slow moment of the machine meets both.
#[test]
fn ad32_chaos_6_critical_is_never_dropped_at_full_saturation_and_takes_at_most_twice_as_long() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (upstream, gate) = upstream(Duration::ZERO).await;
        let gateway = gateway(LIMITS, upstream);
        let address = gateway.address();
        let tracker = gateway.admission().tracker();
        let mut wire = Wire::connect(address).await;
        probe(&mut wire).await;
        let mut ratios = Vec::new();
        for _ in 0..ROUNDS {
            let unloaded = probe(&mut wire).await;

            gate.send_replace(false);
            let held = fill(address).await;
            while tracker.lanes().total() < 100 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let flood = Flood::start(address, unloaded).await;
            let saturated = probe(&mut wire).await;
            assert!(tracker.lanes().total() >= 100, "saturated all the while");
            assert!(flood.stop().await > 0, "more was asked for than was there");
            gate.send_replace(true);
            for task in held {
                assert_eq!(task.await.unwrap(), 200);
            }
            ratios.push(saturated / unloaded);
        }
        println!("critical latency, saturated / unloaded, by round: {ratios:.2?}");
        let stats = tracker.stats();
        assert_eq!(stats.critical_shed, 0);
        assert!(stats.critical_acquired as usize >= (2 * ROUNDS + 1) * PROBES);
        assert!(stats.high_shed > 0 && stats.normal_shed > 0 && stats.low_shed > 0, "{stats:?}");
        assert!(median(ratios.clone()) <= 2.0, "{ratios:?}");
    });
}

/// The median time of a probe, in seconds. Every one of them must be answered.
async fn probe(wire: &mut Wire) -> f64 {
    let mut times = Vec::with_capacity(PROBES);
    for _ in 0..PROBES {
        let start = Instant::now();
        assert_eq!(wire.exchange(&PROBE).await, 200);
        times.push(start.elapsed().as_secs_f64());
    }
    median(times)
}

/// Takes every place of every priority.
async fn fill(address: SocketAddr) -> Vec<JoinHandle<u16>> {
    let mut held = Vec::new();
    for (priority, places) in [("high", 50), ("normal", 30), ("low", 20)] {
        for _ in 0..places {
            let mut wire = Wire::connect(address).await;
            let request = request("GET", "/", priority);
            held.push(tokio::spawn(async move { wire.exchange(&request).await }));
        }
    }
    held
}

/// Requests of every priority, all of which are refused: a thousand a second, or as many for each probe where
/// those take long, so that a slow machine has no more to do beside them than a fast one.
struct Flood {
    stop: Arc<AtomicBool>,
    refused: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
}

impl Flood {
    async fn start(address: SocketAddr, probe_s: f64) -> Self {
        let each = Duration::from_millis(4).max(Duration::from_secs_f64(probe_s) * 12);
        let (stop, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = Vec::new();
        for priority in ["high", "normal", "low", "low"] {
            let mut wire = Wire::connect(address).await;
            let request = request("GET", "/", priority);
            let (stop, refused) = (Arc::clone(&stop), Arc::clone(&refused));
            tasks.push(tokio::spawn(async move {
                let mut ticks = interval(each);
                while !stop.load(Ordering::Relaxed) {
                    ticks.tick().await;
                    assert_eq!(wire.exchange(&request).await, 503);
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Self { stop, refused, tasks }
    }

    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        self.refused.load(Ordering::Relaxed)
    }
}
