use super::fault_injector::{FaultInjector, SharedNode};
use super::node::Plan;
use super::pool::ExecutorPool;
use super::progress::Progress;
use super::times::{Times, by_phase, counts, sample, windows};
use crate::commands::drill::options::Options;
use crate::failure::Failure;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::capacity::Placement;
use tidegate_server::tasks::manager::{TaskList, TaskView};
use tidegate_sim::arrivals::TaskArrivals;
use tidegate_sim::executors::{PlacementRun, Policy, TaskRun};
use tidegate_sim::scenario::Scenario;
use tidegate_testkit::generator::{
    self, Answer, Driver, GeneratorConfig, Progress as LoadProgress, ScheduleStats,
    ScheduledRequest, Template,
};
use tokio::runtime::Builder;

/// Wait between two attempts to submit a task.
const RETRY_WAIT: Duration = Duration::from_millis(250);
/// A task that has not ended this long after the load, plus the time that the remaining work takes, is lost.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// Limit of a page of tasks, which is a few hundred KB.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// Submits tasks when they are due.
struct Submissions<'a> {
    arrivals: TaskArrivals,
    times: Times,
    /// Due time of each task in scenario seconds, and its id once it is accepted.
    tasks: Vec<(f64, Option<String>)>,
    began: Instant,
    began_unix_ms: f64,
    options: &'a Options,
    pool: &'a ExecutorPool,
    progress: Progress,
    policy: Policy,
    /// Reason of a permanent refusal.
    refused: Option<String>,
}

/// Runs the scenario with one of Tidegate's placements.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    placement: Placement,
    times: Times,
    (pool, progress, options): (&Arc<ExecutorPool>, Progress, &Options),
) -> Result<(PlacementRun, ScheduleStats), Failure> {
    let mut plan = Plan::new(placement, pool.addresses(), options.connections);
    let started = plan.start()?;
    let address = plan.address();
    let node: SharedNode = Arc::new(Mutex::new(Some((started, plan))));
    wait_until_ready(address, pool.addresses().len())?;
    let submissions = Submissions {
        arrivals: TaskArrivals::new(scenario, seed),
        times,
        tasks: Vec::new(),
        began: Instant::now(),
        began_unix_ms: 0.0,
        options,
        pool,
        progress,
        policy: Policy::Ours(placement),
        refused: None,
    };
    let injector = FaultInjector::start(&scenario.faults, times, pool, Some(Arc::clone(&node)))?;
    let sent = generator::run(config(address, options)?, vec![template(times)], submissions);
    let refused = injector.end()?;
    let (mut submissions, schedule) = sent.map_err(Failure::runtime)?;
    if let Some(why) = submissions.refused.take() {
        return Err(Failure::Runtime(format!(
            "the manager refuses the tasks of this drill: {why}"
        )));
    }
    let views = drain(address, &mut submissions, options)?;
    let node = node.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((node, _)) = node {
        node.shutdown();
    }
    let wasted = by_phase(&windows(scenario), &refused);
    let mut run = submissions.run(&views, pool);
    run.counts = counts(&wasted, None);
    sample(&mut run, scenario.duration_s);
    Ok((run, schedule))
}

fn config(address: SocketAddr, options: &Options) -> Result<GeneratorConfig, Failure> {
    let config = GeneratorConfig::new(uri(address, "/")?);
    Ok(GeneratorConfig { connections_max: options.connections, ..config })
}

fn template(times: Times) -> Template {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let code = format!("sleep {}ms", times.task().as_millis().max(1));
    let body = serde_json::json!({ "runtime": "mock", "code": code }).to_string();
    Template {
        method: Method::POST,
        path: "/v1/tasks".to_owned(),
        headers,
        body: body.into(),
        deadline: None,
    }
}

fn uri(address: SocketAddr, path: &str) -> Result<Uri, Failure> {
    let parsed: Result<Uri, hyper::http::uri::InvalidUri> =
        format!("http://{address}{path}").parse();
    parsed.map_err(Failure::runtime)
}

/// Sends one GET to the node and decodes its JSON.
fn get<T: serde::de::DeserializeOwned>(address: SocketAddr, path: &str) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    let uri = uri(address, path)?;
    let body = runtime.block_on(async {
        let client: Client<HttpConnector, Empty<Bytes>> =
            Client::builder(TokioExecutor::new()).build_http();
        let response = client.get(uri).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, PAGE_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        match head.status.is_success() {
            true => Ok(body),
            false => Err(format!("{path}: status {}", head.status)),
        }
    });
    let body = body.map_err(Failure::Runtime)?;
    serde_json::from_slice(&body).map_err(Failure::runtime)
}

fn wait_until_ready(address: SocketAddr, executors: usize) -> Result<(), Failure> {
    const WITHIN: Duration = Duration::from_secs(20);
    let began = Instant::now();
    loop {
        let known = get::<serde_json::Value>(address, "/v1/executors");
        let is_up = |executor: &&serde_json::Value| executor["up"] == true;
        let up = match &known {
            Ok(known) => known["executors"].as_array().map(|all| all.iter().filter(is_up).count()),
            Err(_) => None,
        };
        match up {
            Some(up) if up == executors => return Ok(()),
            _ if began.elapsed() > WITHIN => {
                let text =
                    format!("the manager of the test bed does not know its executors: {known:?}");
                return Err(Failure::Runtime(text));
            }
            _ => sleep(Duration::from_millis(20)),
        }
    }
}

/// Waits until every task has ended, or until the drain time is over; returns all tasks by id.
fn drain(
    address: SocketAddr,
    submissions: &mut Submissions<'_>,
    options: &Options,
) -> Result<BTreeMap<String, TaskView>, Failure> {
    let began = Instant::now();
    loop {
        let views = all_tasks(address)?;
        let open = views.values().filter(|view| !view.status.is_over()).count();
        let work = submissions.times.task() * u32::try_from(open).unwrap_or(u32::MAX);
        if open == 0 || began.elapsed() > DRAIN_MAX + work || options.stop.is_requested() {
            return Ok(views);
        }
        submissions.show(submissions.began.elapsed(), "draining");
        sleep(Duration::from_millis(100));
    }
}

fn all_tasks(address: SocketAddr) -> Result<BTreeMap<String, TaskView>, Failure> {
    let mut found = BTreeMap::new();
    let mut after = None;
    loop {
        let cursor = after.map(|after: String| format!("&after={after}")).unwrap_or_default();
        let page: TaskList = get(address, &format!("/v1/tasks?limit=500{cursor}"))?;
        found.extend(page.tasks.into_iter().map(|view| (view.id.to_string(), view)));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

// === impl Submissions ===

impl Driver for Submissions<'_> {
    fn started(&mut self, start: Instant) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.began = start;
        self.began_unix_ms = (unix.as_secs_f64() - start.elapsed().as_secs_f64()) * 1e3;
    }

    fn next(&mut self) -> Option<ScheduledRequest> {
        let due_s = self.arrivals.next()?.as_secs_f64();
        self.tasks.push((due_s, None));
        Some(ScheduledRequest::new(self.times.real(due_s), 0, self.tasks.len() as u64 - 1))
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        let name = answer.result.ok().filter(|head| head.status.is_success()).and_then(|head| {
            let view: serde_json::Value = serde_json::from_slice(&head.body).ok()?;
            view["id"].as_str().map(str::to_owned)
        });
        if let Ok(head) = answer.result
            && head.status.is_client_error()
            && head.status != StatusCode::TOO_MANY_REQUESTS
        {
            let why = String::from_utf8_lossy(&head.body);
            self.refused.get_or_insert(format!("{}: {why}", head.status));
            return None;
        }
        if name.is_none() {
            // The client retries until the task is accepted.
            return Some(ScheduledRequest { due: answer.at + RETRY_WAIT, ..scheduled });
        }
        if let Some(task) = self.tasks.get_mut(usize::try_from(scheduled.id).ok()?) {
            task.1 = name;
        }
        None
    }

    fn tick(&mut self, now: Duration, load: &LoadProgress) -> bool {
        self.show(now, &format!("{} being submitted", load.in_flight + load.waiting));
        self.refused.is_none() && !self.options.stop.is_requested()
    }
}

impl Submissions<'_> {
    fn show(&mut self, now: Duration, detail: &str) {
        let is_ahead = |task: &&(f64, Option<String>)| self.times.real(task.0) > now;
        let due = self.tasks.len() - self.tasks.iter().rev().take_while(is_ahead).count();
        self.progress.show(now, due as u64, self.pool.totals(), detail);
    }

    fn run(&self, views: &BTreeMap<String, TaskView>, pool: &ExecutorPool) -> PlacementRun {
        let began_ms = self.began_unix_ms;
        let scenario_s = |unix_ms: u64| (unix_ms as f64 - began_ms) / 1e3 / self.times.slower;
        let view = |name: &Option<String>| name.as_ref().and_then(|name| views.get(name));
        let started = |view: &TaskView| view.started_ms.map(scenario_s);
        let tasks = self.tasks.iter().map(|(due_s, name)| TaskRun {
            due_s: *due_s,
            started_s: view(name).and_then(started),
        });
        let over = views.values().filter(|view| view.status.is_over());
        let ran = over.clone().filter_map(started).map(|at_s| (at_s, at_s + self.times.task_s));
        let attempts: u64 = views.values().map(|view| u64::from(view.attempt)).sum();
        PlacementRun {
            policy: self.policy,
            tasks: tasks.collect(),
            ran_s: ran.collect(),
            counts: Vec::new(),
            lost: (self.tasks.len() as u64).saturating_sub(over.count() as u64),
            twice: pool.totals().started.saturating_sub(attempts),
            samples: Vec::new(),
            decisions: 0,
        }
    }
}
