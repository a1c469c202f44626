//! The loop that the seed recommends: a worker takes a task and tries all executors in random order. When all are
//! full it sleeps for min(2^attempt + U(0, 1), 60) s and tries again, at most 100 times.

use super::fault_injector::FaultInjector;
use super::pool::ExecutorPool;
use super::progress::Progress;
use super::times::{Times, by_phase, counts, sample, windows};
use crate::commands::drill::options::Options;
use crate::failure::Failure;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::rng::Rng;
use tidegate_sim::arrivals::TaskArrivals;
use tidegate_sim::executors::{PlacementRun, Policy, TaskRun};
use tidegate_sim::scenario::Scenario;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

const ATTEMPTS_MAX: u32 = 100;
const SLEEP_MAX_S: f64 = 60.0;
/// Timeout of a request to an executor.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

type Http = Client<HttpConnector, Full<Bytes>>;
type TaskQueue = tokio::sync::Mutex<mpsc::Receiver<usize>>;

/// State that all workers share.
struct Shared {
    queue: TaskQueue,
    executors: Vec<SocketAddr>,
    http: Http,
    times: Times,
    began: Instant,
    /// Time at which an executor accepted each task.
    started: Mutex<Vec<Option<Duration>>>,
    messages: AtomicU64,
}

/// Runs the scenario with the seed's workers, one for each executor.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    times: Times,
    parts: (&Arc<ExecutorPool>, Progress, &Options),
) -> Result<PlacementRun, Failure> {
    let pool = Arc::clone(parts.0);
    let due_s: Vec<f64> = TaskArrivals::new(scenario, seed).map(|at| at.as_secs_f64()).collect();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    let injector = FaultInjector::start(&scenario.faults, times, &pool, None)?;
    let (started, messages) = runtime.block_on(load(&due_s, seed, times, parts));
    let refused = injector.end()?;
    // Running executions end within this time and then count as done.
    std::thread::sleep(times.task() * 2);
    let totals = pool.totals();
    let accepted = started.iter().flatten().count() as u64;
    let at_s = |at: &Option<Duration>| at.map(|at| times.scenario_s(at));
    let tasks = due_s.iter().zip(&started);
    let windows = windows(scenario);
    let mut run = PlacementRun {
        policy: Policy::Seed,
        tasks: tasks.map(|(due_s, at)| TaskRun { due_s: *due_s, started_s: at_s(at) }).collect(),
        ran_s: started.iter().filter_map(at_s).map(|at_s| (at_s, at_s + times.task_s)).collect(),
        counts: counts(&by_phase(&windows, &refused), Some(&by_phase(&windows, &messages))),
        lost: totals.started.saturating_sub(totals.ended),
        twice: totals.started.saturating_sub(accepted),
        samples: Vec::new(),
        decisions: 0,
    };
    sample(&mut run, scenario.duration_s);
    Ok(run)
}

/// Runs until the load is over. Returns the start time of each task, and message counts over time.
async fn load(
    due_s: &[f64],
    seed: u64,
    times: Times,
    (pool, mut progress, options): (&Arc<ExecutorPool>, Progress, &Options),
) -> (Vec<Option<Duration>>, Vec<(f64, u64)>) {
    // The queue has room for all tasks.
    let (due, queue) = mpsc::channel(due_s.len().max(1));
    let shared = Arc::new(Shared {
        queue: TaskQueue::new(queue),
        executors: pool.addresses(),
        http: Client::builder(TokioExecutor::new()).build_http(),
        times,
        began: Instant::now(),
        started: Mutex::new(vec![None; due_s.len()]),
        messages: AtomicU64::new(0),
    });
    let workers: Vec<_> = (0..shared.executors.len() as u64)
        .map(|number| {
            let rng = Rng::from_seed(seed.wrapping_add(number));
            tokio::spawn(work(Arc::clone(&shared), rng))
        })
        .collect();
    let mut messages = vec![(0.0, 0)];
    let mut next = due_s.iter().enumerate().peekable();
    let end = shared.began + times.load();
    while Instant::now() < end && !options.stop.is_requested() {
        let now = Instant::now();
        while let Some((number, _)) = next.next_if(|(_, at)| shared.began + times.real(**at) <= now)
        {
            // The queue has room for all tasks.
            let _ = due.try_send(number);
        }
        let elapsed = shared.began.elapsed();
        let count = shared.messages.load(Ordering::Relaxed);
        messages.push((times.scenario_s(elapsed), count));
        let due = due_s.len() - next.len();
        progress.show(elapsed, due as u64, pool.totals(), &format!("{count} messages"));
        let tick = now + Duration::from_millis(50);
        let wake = next.peek().map_or(tick, |(_, at)| shared.began + times.real(**at));
        sleep_until(wake.min(tick).min(end)).await;
    }
    workers.iter().for_each(|worker| worker.abort());
    let started = shared.started.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (started, messages)
}

async fn work(shared: Arc<Shared>, rng: Rng) {
    loop {
        let task = shared.queue.lock().await.recv().await;
        let Some(task) = task else { return };
        execute_evaluation(&shared, &rng, task).await;
    }
}

async fn execute_evaluation(shared: &Shared, rng: &Rng, task: usize) {
    for attempt in 0..ATTEMPTS_MAX {
        let mut executors = shared.executors.clone();
        for last in (1..executors.len()).rev() {
            let other = rng.next_u64() % (last as u64 + 1);
            executors.swap(last, other as usize);
        }
        for executor in executors {
            if submit(shared, executor, task).await == Some(StatusCode::OK) {
                let mut started = shared.started.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(at) = started.get_mut(task) {
                    *at = Some(shared.began.elapsed());
                }
                return;
            }
        }
        let drawn = rng.fraction();
        let backoff_s = (f64::from(1_u32 << attempt.min(6)) + drawn).min(SLEEP_MAX_S);
        sleep(shared.times.real(backoff_s)).await;
    }
}

/// Status of the response, if one came.
async fn submit(shared: &Shared, executor: SocketAddr, task: usize) -> Option<StatusCode> {
    let body = format!("{{\"eval_id\":\"seed-{task}\",\"code\":\"work\"}}");
    let request = Request::post(format!("http://{executor}/execute"))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)));
    shared.messages.fetch_add(1, Ordering::Relaxed);
    let exchange = async {
        let response = shared.http.request(request.ok()?).await.ok()?;
        let status = response.status();
        response.into_body().collect().await.ok()?;
        shared.messages.fetch_add(1, Ordering::Relaxed);
        Some(status)
    };
    timeout(ANSWER_TIMEOUT, exchange).await.ok().flatten()
}
