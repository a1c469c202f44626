//! Random histories: several holders ask, crash, and miss answers.

use super::place::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::ledger::{Acquired, AnyLedger, Ledger, SlotLease, SlotLedger, SlotRequest};
use tidegate::task::ExecutionKey;
use tokio::runtime::Handle;

const EXECUTORS: usize = 3;
const HOLDERS: u8 = 6;

static NEXT_CASE: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Debug)]
enum Step {
    Declare {
        executor: usize,
        slots: u32,
    },
    Acquire {
        holder: u8,
        priority: u8,
        executors: Vec<usize>,
        ttl_ms: u64,
    },
    /// Of a lease that was once given: it may be over, and its holder may have another.
    Renew {
        lease: usize,
        ttl_ms: u64,
    },
    Release {
        lease: usize,
    },
    Withdraw {
        holder: u8,
    },
    Reconcile {
        executor: usize,
        running: Vec<u8>,
        back: u64,
    },
    /// A holder forgets what it was given.
    Crash {
        holder: u8,
    },
}

/// What becomes of the answer to a step.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Heard,
    /// The step is done, and nobody hears of it.
    Lost,
    /// The step is done twice: the first answer was lost, or the network doubled the request.
    AskedTwice,
}

type History = Vec<(Step, Reply, u64)>;

/// A ledger and who uses it. Names are a case's own, so that cases can share a server.
struct World {
    ledger: AnyLedger,
    case: u32,
    given: Vec<SlotLease>,
}

fn history() -> impl Strategy<Value = History> {
    let executors = prop::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    let running = prop::collection::vec(0..HOLDERS, 0..3);
    let step = prop_oneof![
        2 => (0..EXECUTORS, 0..3_u32)
            .prop_map(|(executor, slots)| Step::Declare { executor, slots }),
        8 => (0..HOLDERS, 0..4_u8, executors, 5..30_u64).prop_map(
            |(holder, priority, executors, ttl_ms)| {
                Step::Acquire { holder, priority, executors, ttl_ms }
            }
        ),
        2 => (0..12_usize, 1..30_u64).prop_map(|(lease, ttl_ms)| Step::Renew { lease, ttl_ms }),
        4 => (0..12_usize).prop_map(|lease| Step::Release { lease }),
        1 => (0..HOLDERS).prop_map(|holder| Step::Withdraw { holder }),
        1 => (0..EXECUTORS, running, 0..4_u64).prop_map(
            |(executor, running, back)| Step::Reconcile { executor, running, back }
        ),
        1 => (0..HOLDERS).prop_map(|holder| Step::Crash { holder }),
    ];
    let reply =
        prop_oneof![6 => Just(Reply::Heard), 1 => Just(Reply::Lost), 1 => Just(Reply::AskedTwice)];
    prop::collection::vec((step, reply, 0..10_u64), 1..50)
}

fn run_cases(cases: u32, body: impl AsyncFn(History) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let handle = Handle::current();
    tokio::task::block_in_place(|| {
        let tested =
            TestRunner::new(config).run(&history(), |history| handle.block_on(body(history)));
        if let Err(found) = tested {
            panic!("{found}");
        }
    });
}

/// With leases that don't end by time, every answer is that of the pure ledger.
pub async fn as_the_model_says(place: Place) {
    run_cases(place.cases(), async |history| {
        let mut world = World::new(place.ledger());
        let mut model = SlotLedger::new(place.ledger().latest_fence().await.unwrap());
        for (step, reply, _) in &history {
            let times = if matches!(reply, Reply::AskedTwice) { 2 } else { 1 };
            for _ in 0..times {
                world.compare(&mut model, step, *reply).await?;
            }
            for executor in 0..EXECUTORS {
                let name = world.executor(executor);
                let held = world.ledger.held(&name).await.unwrap();
                prop_assert_eq!(held, model.held(&name, Duration::ZERO));
            }
            prop_assert_eq!(world.ledger.latest_fence().await.unwrap(), model.latest_fence());
        }
        world.leave().await;
        Ok(())
    });
}

/// With leases of milliseconds and real pauses between the steps nobody can foretell each answer; the promises
/// hold all the same, and in the end everything is free.
pub async fn with_time(place: Place) {
    const SLOTS: [u32; EXECUTORS] = [1, 2, 1];
    run_cases(12, async |history| {
        let mut world = World::new(place.ledger());
        for (executor, slots) in SLOTS.into_iter().enumerate() {
            world.ledger.declare(&world.executor(executor), slots).await.unwrap();
        }
        let mut fences: BTreeMap<u64, SlotLease> = BTreeMap::new();
        for (step, reply, pause_ms) in &history {
            if matches!(step, Step::Declare { .. }) {
                continue;
            }
            let heard = !matches!(reply, Reply::Lost);
            if let Some(Acquired::Granted(lease)) = world.apply(step, heard).await {
                let known = fences.entry(lease.fence).or_insert_with(|| lease.clone());
                prop_assert_eq!(known, &lease, "a fence is one lease's");
            }
            world.audit(&SLOTS).await?;
            tokio::time::sleep(Duration::from_millis(*pause_ms)).await;
        }
        // All crash.
        for (executor, slots) in SLOTS.into_iter().enumerate() {
            let name = world.executor(executor);
            until_held(&world.ledger, &name, 0).await;
            for number in 0..slots {
                let holder = format!("last-{}-{executor}-{number}@1", world.case);
                let lease = granted(&world.ledger, &request(&holder, &[&name], LONG)).await;
                let highest = fences.last_key_value().map_or(0, |(fence, _)| *fence);
                prop_assert!(lease.fence > highest);
            }
        }
        Ok(())
    });
}

// === impl World ===

impl World {
    fn new(ledger: AnyLedger) -> Self {
        let case = NEXT_CASE.fetch_add(1, Ordering::Relaxed);
        Self { ledger, case, given: Vec::new() }
    }

    fn executor(&self, number: usize) -> String {
        format!("x{}-{number}", self.case)
    }

    fn holder(&self, number: u8) -> ExecutionKey {
        // Two attempts at each task: they are different holders.
        key(&format!("t{}-{}@{}", self.case, number / 2, number % 2 + 1))
    }

    fn request(&self, holder: u8, priority: u8, executors: &[usize], ttl: Duration) -> SlotRequest {
        SlotRequest {
            holder: self.holder(holder),
            priority: MessagePriority::ALL[usize::from(priority)],
            executors: executors.iter().map(|number| self.executor(*number).into()).collect(),
            ttl,
        }
    }

    /// The newest first: those are likelier to be live.
    fn lease(&self, number: usize) -> Option<SlotLease> {
        self.given.len().checked_sub(1 + number).map(|at| self.given[at].clone())
    }

    fn heard(&mut self, acquired: &Acquired) {
        if let Acquired::Granted(lease) = acquired
            && !self.given.contains(lease)
        {
            self.given.push(lease.clone());
        }
    }

    async fn compare(
        &mut self,
        model: &mut SlotLedger,
        step: &Step,
        reply: Reply,
    ) -> Result<(), TestCaseError> {
        let now = Duration::ZERO;
        match step {
            Step::Declare { executor, slots } => {
                let name = self.executor(*executor);
                self.ledger.declare(&name, *slots).await.unwrap();
                model.declare(&name, *slots, now).unwrap();
            }
            Step::Acquire { holder, priority, executors, .. } => {
                let request = self.request(*holder, *priority, executors, LONG);
                let answer = self.ledger.acquire(&request).await.unwrap();
                prop_assert_eq!(&answer, &model.acquire(&request, now).unwrap());
                if !matches!(reply, Reply::Lost) {
                    self.heard(&answer);
                }
            }
            Step::Renew { lease, .. } => {
                let Some(lease) = self.lease(*lease) else { return Ok(()) };
                let answer = self.ledger.renew(&lease, LONG).await.unwrap();
                prop_assert_eq!(answer, model.renew(&lease, LONG, now));
            }
            Step::Release { lease } => {
                let Some(lease) = self.lease(*lease) else { return Ok(()) };
                let answer = self.ledger.release(&lease).await.unwrap();
                prop_assert_eq!(answer, model.release(&lease, now));
            }
            Step::Withdraw { holder } => {
                let holder = self.holder(*holder);
                let answer = self.ledger.withdraw(&holder).await.unwrap();
                prop_assert_eq!(answer, model.withdraw(&holder, now));
            }
            Step::Reconcile { executor, running, back } => {
                let name = self.executor(*executor);
                let running: Vec<_> = running.iter().map(|holder| self.holder(*holder)).collect();
                let asked_after = model.latest_fence().saturating_sub(*back);
                let answer = self.ledger.reconcile(&name, &running, asked_after).await.unwrap();
                prop_assert_eq!(answer, model.reconcile(&name, &running, asked_after, now));
            }
            Step::Crash { holder } => self.crash(*holder),
        }
        Ok(())
    }

    async fn apply(&mut self, step: &Step, heard: bool) -> Option<Acquired> {
        match step {
            Step::Acquire { holder, priority, executors, ttl_ms } => {
                let ttl = Duration::from_millis(*ttl_ms);
                let request = self.request(*holder, *priority, executors, ttl);
                let answer = self.ledger.acquire(&request).await.unwrap();
                if heard {
                    self.heard(&answer);
                }
                return Some(answer);
            }
            Step::Renew { lease, ttl_ms } => {
                let lease = self.lease(*lease)?;
                self.ledger.renew(&lease, Duration::from_millis(*ttl_ms)).await.unwrap();
            }
            Step::Release { lease } => {
                let lease = self.lease(*lease)?;
                self.ledger.release(&lease).await.unwrap();
                assert!(!self.ledger.release(&lease).await.unwrap());
            }
            Step::Withdraw { holder } => {
                self.ledger.withdraw(&self.holder(*holder)).await.unwrap();
            }
            Step::Reconcile { executor, running, .. } => {
                let running: Vec<_> = running.iter().map(|holder| self.holder(*holder)).collect();
                let asked_after = self.ledger.latest_fence().await.unwrap();
                let name = self.executor(*executor);
                self.ledger.reconcile(&name, &running, asked_after).await.unwrap();
            }
            Step::Crash { holder } => self.crash(*holder),
            Step::Declare { .. } => {}
        }
        None
    }

    fn crash(&mut self, holder: u8) {
        let holder = self.holder(holder);
        self.given.retain(|lease| lease.holder != holder);
    }

    /// No executor has more leases than slots, and no holder two.
    async fn audit(&self, slots: &[u32; EXECUTORS]) -> Result<(), TestCaseError> {
        for (number, slots) in slots.iter().enumerate() {
            prop_assert!(self.ledger.held(&self.executor(number)).await.unwrap() <= *slots);
        }
        for holder in 0..HOLDERS {
            let holder = self.holder(holder);
            let mut live = 0;
            for lease in self.given.iter().filter(|lease| lease.holder == holder) {
                let held = self.ledger.renew(lease, Duration::from_millis(1)).await.unwrap();
                live += u32::from(held);
            }
            prop_assert!(live <= 1, "{holder} has {live} leases");
        }
        Ok(())
    }

    /// Leaves nothing behind for the next case to count.
    async fn leave(&self) {
        for number in 0..EXECUTORS {
            self.ledger.declare(&self.executor(number), 0).await.unwrap();
        }
        for holder in 0..HOLDERS {
            self.ledger.withdraw(&self.holder(holder)).await.unwrap();
        }
        for number in 0..EXECUTORS {
            self.ledger.reconcile(&self.executor(number), &[], u64::MAX).await.unwrap();
        }
    }
}
