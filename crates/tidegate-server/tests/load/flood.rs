use crate::support::{MACHINE, Wire, gateway, request, upstream};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tokio::time::{interval, sleep_until};

const UPDATES: u32 = 100_000;
const UPDATES_PER_S: u32 = 10_000;
const SENDERS: u32 = 2_000;

/// What one kind of traffic got.
#[derive(Default, Debug)]
struct Tally {
    served: u32,
    refused: u32,
}

impl Tally {
    fn count(&mut self, status: u16) {
        match status {
            200 => self.served += 1,
            503 => self.refused += 1,
            other => panic!("status {other}"),
        }
    }
}

/// Each update costs the upstream 150 ms, so the manager's 1,000 places for Low serve 6,667 a second: a third
/// of 10,000 must be refused. That a tenth is refused at all shows that more than 7,400 a second came in, on
/// however slow a machine.
#[test]
fn ad32_integration_5_manager_under_10k_updates_a_second_sheds_low_keeps_critical() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    rlimit::increase_nofile_limit(16_384).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (upstream, _gate) = upstream(Duration::from_millis(150)).await;
        let gateway = gateway("role = \"manager\"\n", upstream);
        let address = gateway.address();
        let mut wires = Vec::new();
        for _ in 0..SENDERS {
            wires.push(Wire::connect(address).await);
        }
        let start = Instant::now();
        let others = [
            request("GET", "/health/ready", "low"),
            request("POST", "/dispatch", "high"),
            request("POST", "/status", "normal"),
        ]
        .map(|request| tokio::spawn(beside(address, request)));
        let senders: Vec<_> = (0..)
            .zip(wires)
            .map(|(index, wire)| tokio::spawn(send_updates(index, wire, start)))
            .collect();
        let mut low = Tally::default();
        for sender in senders {
            let tally = sender.await.unwrap();
            low.served += tally.served;
            low.refused += tally.refused;
        }
        let rate = f64::from(UPDATES) / start.elapsed().as_secs_f64();
        assert!(
            others.iter().all(|task| !task.is_finished()),
            "nothing beside the flood was refused"
        );
        let stats = gateway.shared().tracker.stats();
        println!("{rate:.0} updates a second: {low:?}; {stats:?}");

        assert_eq!(low.served + low.refused, UPDATES, "every update was answered");
        assert!(low.refused > UPDATES / 10, "LOW was shed: {low:?}");
        assert!(low.served > UPDATES / 10, "and not all of it: {low:?}");
        assert_eq!(u64::from(low.refused), stats.low_shed, "every refusal is counted");
        // How many came beside the flood depends on the machine; that there were some, and none was refused,
        // does not.
        assert!(stats.critical_acquired > 20, "{} probes", stats.critical_acquired);
        assert_eq!((stats.critical_shed, stats.high_shed, stats.normal_shed), (0, 0, 0));
        assert!(stats.high_acquired > 5 && stats.normal_acquired > 5, "{stats:?}");
    });
}

/// One sender's share of the updates, each sent when it is due.
async fn send_updates(index: u32, mut wire: Wire, start: Instant) -> Tally {
    let update = request("POST", "/updates", "low");
    let mut tally = Tally::default();
    for number in (index..UPDATES).step_by(SENDERS as usize) {
        let due = start + Duration::from_secs(1) * number / UPDATES_PER_S;
        sleep_until(due.into()).await;
        tally.count(wire.exchange(&update).await);
    }
    tally
}

/// Traffic beside the flood that must never be refused.
async fn beside(address: SocketAddr, request: Vec<u8>) {
    let mut wire = Wire::connect(address).await;
    let mut ticks = interval(Duration::from_millis(10));
    loop {
        ticks.tick().await;
        assert_eq!(wire.exchange(&request).await, 200);
    }
}
