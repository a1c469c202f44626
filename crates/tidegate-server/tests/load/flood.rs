use crate::support::{MACHINE, Wire, gateway, request, upstream};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tidegate::PriorityLoadStats;
use tokio::time::{interval, sleep_until};

const UPDATES_PER_S: u32 = 10_000;
const SECONDS: f64 = 10.0;
const SENDERS: u32 = 2_000;
/// Of a manager, for Low.
const PLACES: u32 = 1_000;

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

/// What a flood came to.
struct Flood {
    low: Tally,
    /// Updates that were sent a second.
    rate: f64,
    stats: PriorityLoadStats,
}

/// Updates come half as fast again as the manager's 1,000 places for Low can serve them, so a third must be
/// refused: 10,000 a second where the machine can do that, or as many as it can. One that turns out to do far
/// fewer is flooded anew with those.
#[test]
fn ad32_integration_5_manager_under_10k_updates_a_second_sheds_low_keeps_critical() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    rlimit::increase_nofile_limit(16_384).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut planned = rate_of_machine().await;
        for _ in 0..4 {
            let flood = flood(planned).await;
            let Flood { low, rate, stats } = &flood;
            println!("{rate:.0} updates a second of {planned:.0}: {low:?}; {stats:?}");
            judge_all_but_low(&flood);
            // Two thirds of those that were planned can be served, so that of so many a sixth can't be.
            if *rate >= planned * 0.8 {
                return judge_low(low);
            }
            planned = *rate;
        }
        panic!("this machine became slower each time");
    });
}

/// What holds however fast updates came.
fn judge_all_but_low(Flood { low, stats, .. }: &Flood) {
    assert_eq!(u64::from(low.refused), stats.low_shed, "every refusal is counted");
    // How many came beside the flood depends on the machine; that there were some, and none was refused, does not.
    assert!(stats.critical_acquired > 20, "{} probes", stats.critical_acquired);
    assert_eq!((stats.critical_shed, stats.high_shed, stats.normal_shed), (0, 0, 0));
    assert!(stats.high_acquired > 5 && stats.normal_acquired > 5, "{stats:?}");
}

fn judge_low(low: &Tally) {
    let all = low.served + low.refused;
    assert!(low.refused > all / 10, "LOW was shed: {low:?}");
    assert!(low.served > all / 10, "and not all of it: {low:?}");
}

/// Updates a second that this machine takes to and fro while nobody works on them, up to those that are wanted.
async fn rate_of_machine() -> f64 {
    const EACH: u32 = 5;
    const AT_ONCE: u32 = 500;
    let (upstream, _gate) = upstream(Duration::ZERO).await;
    let gateway = gateway("role = \"manager\"\n", upstream);
    let mut wires = Vec::new();
    for _ in 0..AT_ONCE {
        wires.push(Wire::connect(gateway.address()).await);
    }
    let start = Instant::now();
    let senders = wires.into_iter().map(|mut wire| {
        tokio::spawn(async move {
            let update = request("POST", "/updates", "low");
            for _ in 0..EACH {
                assert_eq!(wire.exchange(&update).await, 200);
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    let rate = f64::from(EACH * AT_ONCE) / start.elapsed().as_secs_f64();
    rate.min(f64::from(UPDATES_PER_S))
}

/// Ten seconds of so many updates a second, or eight times as long as one takes, with what must never be refused
/// beside them.
async fn flood(planned: f64) -> Flood {
    let work = Duration::from_secs_f64(f64::from(PLACES) * 1.5 / planned);
    let updates = (planned * SECONDS.max(8.0 * work.as_secs_f64())) as u32;
    let (upstream, _gate) = upstream(work).await;
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
        .map(|(index, wire)| tokio::spawn(send_updates(index, wire, start, updates, planned)))
        .collect();
    let mut low = Tally::default();
    for sender in senders {
        let tally = sender.await.unwrap();
        low.served += tally.served;
        low.refused += tally.refused;
    }
    // The last are still worked on when all were sent.
    let rate = f64::from(updates) / start.elapsed().saturating_sub(work).as_secs_f64();
    assert!(others.iter().all(|task| !task.is_finished()), "nothing beside the flood was refused");
    assert_eq!(low.served + low.refused, updates, "every update was answered");
    let stats = gateway.admission().tracker().stats();
    Flood { low, rate, stats }
}

/// One sender's share of the updates, each sent when it is due.
async fn send_updates(
    index: u32,
    mut wire: Wire,
    start: Instant,
    updates: u32,
    rate: f64,
) -> Tally {
    let update = request("POST", "/updates", "low");
    let mut tally = Tally::default();
    for number in (index..updates).step_by(SENDERS as usize) {
        let due = start + Duration::from_secs_f64(f64::from(number) / rate);
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
