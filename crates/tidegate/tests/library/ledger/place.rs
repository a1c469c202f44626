use crate::support::redis::Redis;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::ledger::{Acquired, AnyLedger, Ledger, LedgerError, SlotLease, SlotRequest};
use tidegate::task::ExecutionKey;
use tokio::time::Instant;

/// Longer than any test: what lasts so long does not end by time.
pub const LONG: Duration = Duration::from_secs(600);
/// So short that a test can wait for its end.
pub const SHORT: Duration = Duration::from_millis(40);
/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(60);

static NEXT_NAMESPACE: AtomicU32 = AtomicU32::new(0);

/// Where a test's ledger is.
pub struct Place {
    ledger: AnyLedger,
    server: Option<(Arc<Redis>, String)>,
}

impl Place {
    pub async fn memory() -> Self {
        Self { ledger: AnyLedger::open("memory:").await.unwrap(), server: None }
    }

    pub async fn redis() -> Self {
        let server = Redis::shared();
        let number = NEXT_NAMESPACE.fetch_add(1, Ordering::Relaxed);
        // Generous: many tests run at once on a few cores.
        let url = server.url(&format!("namespace=test-{number}&timeout_ms=30000"));
        let ledger = AnyLedger::open(&url).await.unwrap();
        Self { ledger, server: Some((server, url)) }
    }

    pub fn ledger(&self) -> AnyLedger {
        self.ledger.clone()
    }

    /// How many random histories it is asked to live through.
    pub fn cases(&self) -> u32 {
        if self.server.is_some() { 64 } else { 512 }
    }

    /// The ledger as another manager has it: with a connection of its own, where there is one.
    pub async fn another(&self) -> AnyLedger {
        match &self.server {
            Some((_, url)) => AnyLedger::open(url).await.unwrap(),
            None => self.ledger.clone(),
        }
    }
}

/// Runs a test's body as programs run ours, on several threads; and not for ever.
pub fn run<T>(body: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bounded = async { tokio::time::timeout(PATIENCE * 3, body).await };
    runtime.block_on(bounded).expect("the test does not end")
}

pub fn key(text: &str) -> ExecutionKey {
    text.parse().unwrap()
}

pub fn request(holder: &str, executors: &[&str], ttl: Duration) -> SlotRequest {
    let executors = executors.iter().map(|name| Box::from(*name)).collect();
    SlotRequest { holder: key(holder), priority: MessagePriority::Normal, executors, ttl }
}

pub async fn granted(ledger: &AnyLedger, request: &SlotRequest) -> SlotLease {
    match ledger.acquire(request).await.unwrap() {
        Acquired::Granted(lease) => lease,
        Acquired::Waiting { ahead } => panic!("{} waits behind {ahead}", request.holder),
    }
}

pub async fn waits_behind(ledger: &AnyLedger, request: &SlotRequest) -> u64 {
    match ledger.acquire(request).await.unwrap() {
        Acquired::Waiting { ahead } => ahead,
        Acquired::Granted(lease) => panic!("it was granted {lease:?}"),
    }
}

/// Asks until there is a slot, as a manager does.
pub async fn turn(ledger: &AnyLedger, request: &SlotRequest) -> SlotLease {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ledger.acquire(request).await.unwrap() {
            Acquired::Granted(lease) => return lease,
            Acquired::Waiting { ahead } => {
                assert!(Instant::now() < deadline, "{} still waits behind {ahead}", request.holder);
                ledger.changed().await;
            }
        }
    }
}

/// Asks again until it is so.
pub async fn until<T, F: Future<Output = Option<T>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come about");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn until_held(ledger: &AnyLedger, executor: &str, held: u32) {
    until(async || (ledger.held(executor).await.unwrap() == held).then_some(())).await;
}

pub fn is_unavailable<T>(answer: &Result<T, LedgerError>) -> bool {
    matches!(answer, Err(LedgerError::Unavailable(_)))
}

/// Two managers hand the one slot of an executor to and fro; each wakes by the other's release. Waiting for polls
/// would take a second each.
pub async fn hand_to_and_fro(here: AnyLedger, there: AnyLedger) {
    const ROUNDS: u32 = 40;
    let began = Instant::now();
    let play = |ledger: AnyLedger, name: &'static str| async move {
        for round in 0..ROUNDS {
            let lease = turn(&ledger, &request(&format!("{name}-{round}@1"), &["red"], LONG)).await;
            // Long enough for the other to wait for it.
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(ledger.release(&lease).await.unwrap());
        }
    };
    let others = tokio::spawn(play(there, "there"));
    play(here, "here").await;
    others.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(u64::from(ROUNDS) / 2), "nobody is woken");
}
