use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;
use tidegate::outbox::{Delivery, Failure, Transport, Undelivered};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A transport without a network, for tests in virtual time: what each destination does is told by the test.
pub struct Wire {
    batch_max: usize,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    behaviours: BTreeMap<SocketAddr, Behaviour>,
    sends: Vec<Sent>,
    delivered: BTreeMap<SocketAddr, Vec<u64>>,
    forgotten: Vec<SocketAddr>,
}

/// One call of `send`.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub messages: Vec<u64>,
}

/// What a destination does with the next batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Takes it at once.
    #[default]
    Answer,
    /// Takes it after so long.
    After(Duration),
    /// Does not answer until told otherwise.
    Stall,
    /// Fails, whatever comes.
    Fail(Failure),
    /// Fails so often, then answers.
    FailTimes(u32, Failure),
    /// Takes so many of the first batch that is larger, fails, then answers.
    Partly(usize, Failure),
    /// Panics once, then answers.
    Panic,
    /// Answers with one reply too few.
    Forget,
}

/// What went wrong on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

// === impl Wire ===

impl Wire {
    pub fn new() -> Self {
        Self::batching(1)
    }

    pub fn batching(batch_max: usize) -> Self {
        Self { batch_max, inner: Mutex::default(), changed: Notify::new() }
    }

    pub fn set(&self, destination: SocketAddr, behaviour: Behaviour) {
        self.lock().behaviours.insert(destination, behaviour);
        self.changed.notify_waiters();
    }

    pub fn delivered(&self, destination: SocketAddr) -> Vec<u64> {
        self.lock().delivered.get(&destination).cloned().unwrap_or_default()
    }

    pub fn sends(&self) -> Vec<Sent> {
        self.lock().sends.clone()
    }

    pub fn forgotten(&self) -> Vec<SocketAddr> {
        self.lock().forgotten.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no test panics with it in hand")
    }

    fn behaviour(&self, destination: SocketAddr) -> Behaviour {
        self.lock().behaviours.get(&destination).copied().unwrap_or_default()
    }

    fn deliver(&self, destination: SocketAddr, batch: &[u64]) -> Vec<u64> {
        self.lock().delivered.entry(destination).or_default().extend(batch);
        batch.to_vec()
    }

    async fn stall(&self, destination: SocketAddr) {
        loop {
            let changed = self.changed.notified();
            if self.behaviour(destination) != Behaviour::Stall {
                return;
            }
            changed.await;
        }
    }
}

impl Transport for Wire {
    type Destination = SocketAddr;
    type Message = u64;
    type Reply = u64;
    type Error = Broken;

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    async fn send(&self, destination: &SocketAddr, batch: &[u64]) -> Delivery<u64, Broken> {
        let sent = Sent { at: Instant::now(), messages: batch.to_vec() };
        self.lock().sends.push(sent);
        self.stall(*destination).await;
        match self.behaviour(*destination) {
            Behaviour::Answer | Behaviour::Stall => Ok(self.deliver(*destination, batch)),
            Behaviour::After(delay) => {
                tokio::time::sleep(delay).await;
                Ok(self.deliver(*destination, batch))
            }
            Behaviour::Fail(failure) => Err(Undelivered::all(failure, Broken)),
            Behaviour::FailTimes(times, failure) => {
                let left = times.saturating_sub(1);
                let next =
                    if left > 0 { Behaviour::FailTimes(left, failure) } else { Behaviour::Answer };
                self.set(*destination, next);
                Err(Undelivered::all(failure, Broken))
            }
            Behaviour::Partly(count, _) if batch.len() <= count => {
                Ok(self.deliver(*destination, batch))
            }
            Behaviour::Partly(count, failure) => {
                self.set(*destination, Behaviour::Answer);
                let replies = self.deliver(*destination, &batch[..count]);
                Err(Undelivered { replies, failure, error: Broken })
            }
            Behaviour::Panic => {
                self.set(*destination, Behaviour::Answer);
                panic!("the transport panics, as the test has told it to")
            }
            Behaviour::Forget => {
                let mut replies = self.deliver(*destination, batch);
                replies.pop();
                Ok(replies)
            }
        }
    }

    fn forget(&self, destination: &SocketAddr) {
        self.lock().forgotten.push(*destination);
    }
}

// === impl Broken ===

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the wire is broken")
    }
}

impl std::error::Error for Broken {}
