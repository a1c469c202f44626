use super::advisor::Advisor;
use super::case::{ReturnCase, ServiceShape};
use super::policy::{AdvisedClient, ReturnPolicy};
use super::simulation::{ReturnFigures, run};
use std::time::Duration;

/// The most attempts for each request that a rival may take, on average. With more, the fastest policy is one that
/// asks without pause.
pub const ATTEMPTS_MAX: f64 = 10.0;

/// Bounds on a run of advised clients, so that a law that makes them poll without pause ends.
const ADVISED_ATTEMPTS_MAX: f64 = 1_000.0;

/// Delays of rivals, as parts of the mean service time.
const DELAYS: [f64; 11] = [0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// A policy and its figures, averaged over the seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rival {
    /// The policy.
    pub policy: ReturnPolicy,
    /// Its figures.
    pub figures: ReturnFigures,
}

/// Clients that honour the advice, the best policy that polls, and a queue, in the same case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Clients that honour the advice.
    pub advised: ReturnFigures,
    /// The policy that polls with the shortest makespan, of those with at most [`ATTEMPTS_MAX`] attempts.
    pub rival: Rival,
    /// A queue.
    pub queue: ReturnFigures,
}

/// Searches the retry policy with the shortest makespan among fixed delays and exponential backoffs with full
/// jitter, that takes at most [`ATTEMPTS_MAX`] attempts for each request on average. A queue stands in if none
/// does.
#[must_use]
pub fn best_rival(case: &ReturnCase, seeds: &[u64]) -> Rival {
    let part = |share: f64| case.service.mul_f64(share);
    let fixed = DELAYS.iter().map(|share| ReturnPolicy::Fixed(part(*share)));
    let backoff = DELAYS.iter().flat_map(|base| {
        [1.0, 4.0, 16.0]
            .map(|times| ReturnPolicy::Backoff { base: part(*base), cap: part(base * times) })
    });
    let rivals = fixed.chain(backoff).filter_map(|policy| {
        let figures = mean(case, Advisor::Executor, policy, seeds, ATTEMPTS_MAX)?;
        Some(Rival { policy, figures })
    });
    rivals
        .min_by_key(|rival| rival.figures.makespan)
        .unwrap_or_else(|| Rival { policy: ReturnPolicy::Queue, figures: queue(case, seeds) })
}

/// Judges the advice in a case.
#[must_use]
pub fn judge(case: &ReturnCase, advisor: Advisor, client: AdvisedClient, seeds: &[u64]) -> Judged {
    judge_against(best_rival(case, seeds), case, advisor, client, seeds)
}

/// Judges the advice in a case whose best rival is known.
#[must_use]
pub fn judge_against(
    rival: Rival,
    case: &ReturnCase,
    advisor: Advisor,
    client: AdvisedClient,
    seeds: &[u64],
) -> Judged {
    let policy = ReturnPolicy::Advised(client);
    let advised =
        mean(case, advisor, policy, seeds, ADVISED_ATTEMPTS_MAX).unwrap_or(ReturnFigures {
            makespan: Duration::MAX,
            attempts: f64::INFINITY,
            ..rival.figures
        });
    Judged { advised, rival, queue: queue(case, seeds) }
}

/// All cases of some numbers of clients and slots, times and shapes, in which clients are refused.
#[must_use]
pub fn grid(clients: &[u32], slots: &[u32], service_ms: &[u64]) -> Vec<ReturnCase> {
    let mut cases = Vec::new();
    for &clients in clients {
        for &slots in slots.iter().filter(|slots| clients == 1 || **slots < clients) {
            for &ms in service_ms {
                for shape in [ServiceShape::Fixed, ServiceShape::Exponential] {
                    let service = Duration::from_millis(ms);
                    for (requests_each, pause) in
                        [(1, Duration::ZERO), (20, Duration::ZERO), (20, service)]
                    {
                        let load = (clients, requests_each, pause);
                        cases.push(ReturnCase::new(load, slots, service, shape));
                    }
                }
            }
        }
    }
    cases
}

fn queue(case: &ReturnCase, seeds: &[u64]) -> ReturnFigures {
    mean(case, Advisor::Executor, ReturnPolicy::Queue, seeds, 1.0).unwrap_or_default()
}

fn mean(
    case: &ReturnCase,
    advisor: Advisor,
    policy: ReturnPolicy,
    seeds: &[u64],
    attempts_max: f64,
) -> Option<ReturnFigures> {
    let runs: Option<Vec<_>> =
        seeds.iter().map(|seed| run(case, advisor, policy, *seed, attempts_max)).collect();
    let runs = runs?;
    let count = u32::try_from(runs.len()).ok().filter(|count| *count > 0)?;
    let time = |of: fn(&ReturnFigures) -> Duration| runs.iter().map(of).sum::<Duration>() / count;
    Some(ReturnFigures {
        makespan: time(|run| run.makespan),
        completion_mean: time(|run| run.completion_mean),
        attempts: runs.iter().map(|run| run.attempts).sum::<f64>() / f64::from(count),
        advice_p50: time(|run| run.advice_p50),
    })
}

// === impl Judged ===

impl Judged {
    /// The makespan of clients that honour the advice, as a multiple of the best rival's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.advised.makespan.as_secs_f64() / self.rival.figures.makespan.as_secs_f64()
    }
}
