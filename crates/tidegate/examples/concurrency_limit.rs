//! A limit that finds the slots of a simulated server, and finds them again when the server has fewer.
//!
//! `cargo run -p tidegate --example concurrency_limit`

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;
use tidegate::limit::{ConcurrencyLimit, LimitConfig, Started, UpstreamOutcome};
use tidegate::rng::Rng;

/// Serves as many requests at once as it has slots, each in 20 ms ± 10 %; others wait inside.
struct Server {
    slots: usize,
    waiting: VecDeque<usize>,
    ends: BinaryHeap<Reverse<(Duration, usize)>>,
    rng: Rng,
}

impl Server {
    fn serve(&mut self, now: Duration) {
        while self.ends.len() < self.slots
            && let Some(request) = self.waiting.pop_front()
        {
            let service = Duration::from_millis(20).mul_f64(0.9 + 0.2 * self.rng.fraction());
            self.ends.push(Reverse((now + service, request)));
        }
    }
}

/// Sends as much as the limit allows, in simulated time. Returns the mean of the limit over the last second.
fn run(
    limit: &mut ConcurrencyLimit,
    server: &mut Server,
    requests: &mut Vec<Started>,
    from: Duration,
    until: Duration,
) -> f64 {
    let (mut now, mut found) = (from, limit.snapshot().found);
    let (mut sum, mut count) = (0.0, 0.0);
    while now < until {
        while limit.allows(now) {
            server.waiting.push_back(requests.len());
            requests.push(limit.on_start(now));
        }
        limit.on_waiting(now, true);
        server.serve(now);
        let Some(Reverse((end, request))) = server.ends.pop() else { break };
        now = end;
        limit.on_end(now, requests[request], UpstreamOutcome::Success);
        limit.tick(now);
        let snapshot = limit.snapshot();
        if snapshot.found != found {
            println!(
                "{:>6} ms: {found:>3} → {:<3} {}",
                now.as_millis(),
                snapshot.found,
                snapshot.last_move
            );
            found = snapshot.found;
        }
        if now + Duration::from_secs(1) >= until {
            sum += f64::from(found);
            count += 1.0;
        }
    }
    sum / count
}

pub(crate) fn main() {
    let mut limit = ConcurrencyLimit::new(LimitConfig::default());
    let (waiting, ends) = (VecDeque::new(), BinaryHeap::new());
    let mut server = Server { slots: 24, waiting, ends, rng: Rng::from_seed(1) };
    let mut requests = Vec::new();
    let mut from = Duration::ZERO;
    for slots in [24, 8] {
        println!("the server has {slots} slots");
        server.slots = slots;
        let until = from + Duration::from_secs(10);
        let found = run(&mut limit, &mut server, &mut requests, from, until);
        println!("the limit found is {found:.0}\n");
        assert!((0.7..=1.8).contains(&(found / slots as f64)), "{found} for {slots} slots");
        from = until;
    }
}
