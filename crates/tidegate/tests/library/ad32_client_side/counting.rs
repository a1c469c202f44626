//! What the numbers say agrees with who holds what.

use super::support::{Broken, at, config, manager};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tidegate::MessageClass::Data;
use tidegate::outbox::{Delivery, OutgoingRequestManager, Transport};

/// Answers everything at once.
struct Echo;

/// A message that looks, when it goes, how many are in flight.
struct Witness(Arc<Seen>);

#[derive(Default)]
struct Seen {
    manager: OnceLock<Weak<OutgoingRequestManager<Echo>>>,
    in_flight: Mutex<Vec<usize>>,
}

impl Transport for Echo {
    type Destination = SocketAddr;
    type Message = Witness;
    type Reply = ();
    type Error = Broken;

    async fn send(&self, _to: &SocketAddr, batch: &[Witness]) -> Delivery<(), Broken> {
        Ok(vec![(); batch.len()])
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let manager = self.0.manager.get().and_then(Weak::upgrade);
        let stats = manager.and_then(|manager| manager.stats_of(&at(1))).expect("it is there");
        let mut seen = self.0.in_flight.lock().expect("no test panics with it in hand");
        seen.push(stats.sender.in_flight);
    }
}

/// Whoever waits until nothing is in flight must not find that a message is still held.
#[tokio::test]
async fn a_message_is_in_flight_as_long_as_it_is_held() {
    let (manager, _hand_back) = manager(Echo, config());
    let (manager, seen) = (Arc::new(manager), Arc::new(Seen::default()));
    seen.manager.set(Arc::downgrade(&manager)).expect("it is set once");
    for _ in 0..3 {
        manager.send(&at(1), Data, Witness(Arc::clone(&seen))).await.expect("it is answered");
        let stats = manager.stats_of(&at(1)).expect("it has a queue");
        assert_eq!(stats.sender.in_flight, 0, "and not when it was answered");
    }
    assert_eq!(*seen.in_flight.lock().expect("no test panics with it in hand"), [1, 1, 1]);
}
