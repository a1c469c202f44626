//! One slot and a few who want it: by DECR and INCR, as is often recommended, and by the ledger.

use super::search::{Model, search};
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{Acquired, SlotLease, SlotLedger, SlotRequest};

const CLIENTS: usize = 3;
const TTL: Duration = Duration::from_secs(1);

/// Which of its failures is looked for.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
enum Looking {
    Leak,
    FalseRefusal,
    TwoHolders,
}

#[derive(Clone, Copy, Hash, PartialEq, Eq)]
enum Client {
    New,
    Holds,
    /// Found the count below zero, and is about to restore it.
    PutsBack,
    Refused {
        falsely: bool,
    },
    /// Has released, and may release once more because the reply was lost.
    Released,
    Over,
    Crashed,
}

#[derive(Clone, Hash)]
struct Decr {
    looking: Looking,
    count: i32,
    clients: [Client; CLIENTS],
}

impl Decr {
    fn new(looking: Looking) -> Self {
        Self { looking, count: 1, clients: [Client::New; CLIENTS] }
    }

    fn holders(&self) -> usize {
        self.clients.iter().filter(|client| **client == Client::Holds).count()
    }
}

impl Model for Decr {
    fn steps(&self) -> Vec<Self> {
        let mut steps = Vec::new();
        for at in 0..CLIENTS {
            let mut step = |client, by| {
                let mut next = self.clone();
                next.clients[at] = client;
                next.count += by;
                steps.push(next);
            };
            match self.clients[at] {
                Client::New if self.count > 0 => step(Client::Holds, -1),
                Client::New if self.holders() == 0 => step(Client::Refused { falsely: true }, -1),
                Client::New => step(Client::PutsBack, -1),
                Client::PutsBack => step(Client::Refused { falsely: false }, 1),
                Client::Holds => {
                    step(Client::Released, 1);
                    step(Client::Crashed, 0);
                }
                Client::Released => {
                    step(Client::Released, 1);
                    step(Client::Over, 0);
                }
                Client::Refused { .. } | Client::Over | Client::Crashed => {}
            }
        }
        steps.retain(|next| next.count.abs() < 4);
        steps
    }

    fn wrong(&self) -> Option<&'static str> {
        let crashed = self.clients.contains(&Client::Crashed);
        let putting_back = self.clients.contains(&Client::PutsBack);
        let refused = self.clients.contains(&Client::Refused { falsely: true });
        match self.looking {
            Looking::Leak if crashed && self.holders() == 0 && !putting_back && self.count < 1 => {
                Some("nobody holds the slot, and nobody ever will")
            }
            Looking::FalseRefusal if refused && !crashed => Some("refused beside a free slot"),
            Looking::TwoHolders if self.holders() > 1 => Some("two hold one slot"),
            _ => None,
        }
    }

    fn is_done(&self) -> bool {
        true
    }
}

/// The same clients with the shipped ledger. Whoever crashed is gone; its lease runs out at some time or other.
#[derive(Clone, Hash)]
struct Ledger {
    ledger: SlotLedger,
    clients: [LedgerClient; CLIENTS],
    fence_last: u64,
    wrong: Option<&'static str>,
    releases: u8,
}

#[derive(Clone, Hash, PartialEq, Eq)]
enum LedgerClient {
    New,
    Waits,
    Holds(SlotLease),
    /// Believes that it holds a slot, but its lease has expired.
    Zombie(SlotLease),
    Released(SlotLease),
    Crashed,
}

impl Ledger {
    fn new() -> Self {
        let mut ledger = SlotLedger::new(0);
        ledger.declare("red", 1, Duration::ZERO).unwrap();
        let clients = std::array::from_fn(|_| LedgerClient::New);
        Self { ledger, clients, fence_last: 0, wrong: None, releases: 6 }
    }

    fn ask(&self, at: usize) -> Self {
        let mut next = self.clone();
        let holder = format!("task@{}", at + 1).parse().unwrap();
        let executors = vec!["red".into()];
        let request = SlotRequest { holder, priority: Normal, executors, ttl: TTL };
        match next.ledger.acquire(&request, Duration::ZERO).unwrap() {
            Acquired::Granted(lease) => {
                if lease.fence <= next.fence_last {
                    next.wrong = Some("a fence did not rise");
                }
                next.fence_last = lease.fence;
                next.clients[at] = LedgerClient::Holds(lease);
            }
            Acquired::Waiting { ahead } => {
                let others = next.clients.iter().filter(|client| **client != LedgerClient::New);
                if ahead == 0 && others.count() == 0 {
                    next.wrong = Some("refused beside a free slot");
                }
                next.clients[at] = LedgerClient::Waits;
            }
        }
        next
    }

    fn expire(&self) -> Self {
        let mut next = self.clone();
        next.ledger.expire(TTL);
        for client in &mut next.clients {
            if let LedgerClient::Holds(lease) = client.clone() {
                *client = LedgerClient::Zombie(lease);
            }
        }
        next
    }
}

impl Model for Ledger {
    fn steps(&self) -> Vec<Self> {
        let mut steps = vec![self.expire()];
        for at in 0..CLIENTS {
            let mut become_ = |client| {
                let mut next = self.clone();
                next.clients[at] = client;
                steps.push(next);
            };
            match &self.clients[at] {
                LedgerClient::New | LedgerClient::Waits => {
                    become_(LedgerClient::Crashed);
                    steps.push(self.ask(at));
                }
                LedgerClient::Holds(lease)
                | LedgerClient::Zombie(lease)
                | LedgerClient::Released(lease) => {
                    become_(LedgerClient::Crashed);
                    if self.releases > 0 {
                        let mut next = self.clone();
                        next.releases -= 1;
                        let held = matches!(self.clients[at], LedgerClient::Holds(_));
                        if next.ledger.release(lease, Duration::ZERO) != held {
                            next.wrong = Some("a release did what it should not");
                        }
                        next.clients[at] = LedgerClient::Released(lease.clone());
                        steps.push(next);
                    }
                }
                LedgerClient::Crashed => {}
            }
        }
        steps
    }

    fn wrong(&self) -> Option<&'static str> {
        let holds = |client: &&LedgerClient| matches!(client, LedgerClient::Holds(_));
        match self.clients.iter().filter(holds).count() {
            0 | 1 => self.wrong,
            _ => Some("two hold one slot"),
        }
    }

    /// The slot is free, or is one step of time from it: nothing leaked.
    fn is_done(&self) -> bool {
        self.ledger.clone().held("red", Duration::ZERO) == 0
    }
}

#[test]
fn a_decr_semaphore_fails_in_two_four_and_five_steps() {
    for (looking, steps) in
        [(Looking::Leak, 2), (Looking::FalseRefusal, 4), (Looking::TwoHolders, 5)]
    {
        let found = search(Decr::new(looking));
        println!("DECR: {found:?}");
        assert_eq!(found.wrong.unwrap().0, steps);
    }
}

#[test]
fn the_ledger_does_none_of_that() {
    let found = search(Ledger::new());
    println!("ledger: {found:?}");
    assert_eq!((found.wrong, found.stuck), (None, 0));
    assert!(found.states > 100);
}
