use super::sweep::{sweep, times};
use super::{Limits, Outcome, Recording, Setting, Verdict};
use serde::Serialize;
use tidegate_core::admission::InFlightTracker;

/// A recording, and what limits make of it, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Requests in it.
    pub requests: u64,
    /// The duration in seconds.
    pub lasted_s: f64,
    /// The begin, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Requests that were not written down.
    pub lost: u64,
    /// Requests that had not ended when it did.
    pub unended: u64,
    /// The reason of the end; `None` when the recording breaks off.
    pub end: Option<String>,
    /// True if limits only counted then.
    pub dry_run: bool,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The outcome as recorded.
    pub as_recorded: Outcome,
    /// The limits that were in force, replayed.
    pub same: Replayed,
    /// Other limits, replayed.
    pub changed: Option<Replayed>,
}

/// The outcome of a recording under some limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The limits.
    pub limits: Limits,
    /// The share of requests that were let in or refused as in the recording.
    pub same_decision: f64,
    /// The difference in admitted requests from the recording, as a share of all requests.
    pub let_in_difference: f64,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Replays a recording with the limits that it has, and with these settings if there are any. The same
/// recording, settings and seed give the same.
#[must_use]
pub fn compare(recording: &Recording, settings: &[Setting], seed: u64) -> Comparison {
    let times = times(recording, seed);
    let (as_recorded, ..) = sweep(recording, &times, |arrival| match arrival.verdict {
        Verdict::Refused(reason) => Err(reason),
        Verdict::Admitted | Verdict::Other(_) => Ok(()),
    });
    let replayed = |limits: Limits| replay(recording, limits, &times, &as_recorded);
    let same = replayed(recording.limits);
    let changed = (!settings.is_empty()).then(|| replayed(recording.limits.with(settings)));
    Comparison {
        requests: as_recorded.all.asked,
        lasted_s: recording.lasted_us as f64 / 1e6,
        started_unix_ms: recording.started_unix_ms,
        lost: recording.lost,
        unended: recording.unended,
        end: recording.end.clone(),
        dry_run: recording.dry_run,
        seed,
        as_recorded,
        same,
        changed,
    }
}

fn replay(recording: &Recording, limits: Limits, times: &[u64], was: &Outcome) -> Replayed {
    let tracker = InFlightTracker::new(limits.limits, limits.sharing);
    let (outcome, same, decided) = sweep(recording, times, |arrival| {
        tracker.try_acquire(arrival.priority).map_err(|refusal| refusal.reason)
    });
    let of = |part: f64, whole: u64| if whole == 0 { 0.0 } else { part / whole as f64 };
    let same_decision = if decided == 0 { 1.0 } else { of(same as f64, decided) };
    let difference = was.all.refused() as f64 - outcome.all.refused() as f64;
    let let_in_difference = of(difference, was.all.asked);
    Replayed { limits, same_decision, let_in_difference, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draw;
    use crate::replay::Arrival;
    use tidegate_core::admission::MessagePriority::{Low, Normal};
    use tidegate_core::admission::{MessagePriority, PriorityLimits, Reason, Sharing};

    /// A recording that the shipped admission made, of requests of 1 to 50 ms that come four times as fast as
    /// there is room for: what happened is known to the last decision.
    fn made(requests: u64) -> Recording {
        let limits = PriorityLimits::new(20, 0, 12, 8);
        let limits = Limits { limits, sharing: Sharing::Strict };
        let mut rng = tidegate_core::rng::Rng::new(5);
        let mut at = 0.0;
        let asked: Vec<(i64, u64, MessagePriority)> = (0..requests)
            .map(|_| {
                at += rng.exponential(320.0);
                let priority = if rng.next_u64().is_multiple_of(2) { Normal } else { Low };
                (at as i64, 1_000 + rng.next_u64() % 49_000, priority)
            })
            .collect();
        let all: Vec<Arrival> = asked
            .iter()
            .map(|&(at_us, took, priority)| Arrival {
                at_us,
                took_us: Some(took),
                priority,
                verdict: Verdict::Admitted,
            })
            .collect();
        let mut recording = Recording {
            limits,
            dry_run: false,
            started_unix_ms: 0,
            lasted_us: at as u64,
            arrivals: all,
            others: vec![],
            lost: 0,
            end: Some("time".to_owned()),
            unended: 0,
        };
        let tracker = InFlightTracker::new(limits.limits, limits.sharing);
        let times: Vec<u64> = asked.iter().map(|asked| asked.1).collect();
        let mut refused = Vec::new();
        let mut number = 0;
        let _ = sweep(&recording, &times, |arrival| {
            let decided = tracker.try_acquire(arrival.priority).map_err(|refusal| refusal.reason);
            if let Err(reason) = &decided {
                refused.push((number, *reason));
            }
            number += 1;
            decided
        });
        for (number, reason) in refused {
            recording.arrivals[number].verdict = Verdict::Refused(reason);
            recording.arrivals[number].took_us = None;
        }
        recording
    }

    #[test]
    fn the_same_limits_decide_the_same() {
        let recording = made(20_000);
        let comparison = compare(&recording, &[], 1);
        assert!(comparison.as_recorded.all.refused() > 10_000, "it was far too much");
        assert_eq!(comparison.same.same_decision, 1.0);
        assert_eq!(comparison.same.outcome, comparison.as_recorded);
        assert_eq!(comparison.changed, None);
    }

    #[test]
    fn a_lower_limit_refuses_more_and_a_higher_one_less() {
        let recording = made(20_000);
        let with = |setting: &str| {
            let settings = [setting.parse().unwrap()];
            compare(&recording, &settings, 1).changed.unwrap().outcome
        };
        let was = compare(&recording, &[], 1).as_recorded;
        let (low, high) = (with("limits.low=2"), with("limits.global=200"));
        assert!(low.by_priority["low"].admitted < was.by_priority["low"].admitted / 2);
        assert!(low.by_priority["low"].in_flight_max <= 2);
        assert!(high.all.refused() < was.all.refused());
        assert_eq!(high.all.global_limit, 0, "12 and 8 of 200");
        assert_eq!(low.all.asked, was.all.asked, "the load is the same");
        // Little's law, with what the replay itself counts: a mean time of 25.5 ms.
        let mean = was.all.admitted as f64 * 25_500.0 / recording.lasted_us as f64;
        let found = was.all.in_flight_mean;
        assert!((found / mean - 1.0).abs() < 0.05, "{found} where {mean} was expected");
    }

    #[test]
    fn the_seed_draws_the_times_that_are_not_known() {
        let recording = made(5_000);
        let with = |seed| {
            let settings = ["limits.global=40".parse().unwrap(), "limits.low=20".parse().unwrap()];
            compare(&recording, &settings, seed).changed
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }

    #[test]
    fn what_others_refused_is_counted_apart_and_holds_its_place_meanwhile() {
        let mut recording = made(4);
        let row = |at_us, took_us, verdict| Arrival { at_us, took_us, priority: Low, verdict };
        recording.others = vec!["queue_timeout".to_owned(), "client_share".to_owned()];
        recording.arrivals = vec![
            row(-10, Some(50), Verdict::Admitted),
            row(0, Some(100), Verdict::Other(0)),
            row(10, None, Verdict::Other(1)),
            row(20, Some(10), Verdict::Admitted),
            row(45, Some(10), Verdict::Admitted),
        ];
        recording.lasted_us = 100;
        let settings = ["limits.global=2".parse().unwrap()];
        let comparison = compare(&recording, &settings, 1);
        let was = &comparison.as_recorded.all;
        assert_eq!((was.asked, was.admitted, was.others, was.in_flight_max), (4, 2, 2, 3));
        let now = comparison.changed.unwrap().outcome.all;
        // Until 40 two places are taken: by what came before, and by what waits for an upstream.
        assert_eq!((now.admitted, now.global_limit, now.others), (1, 1, 2));
        assert_eq!(recording.arrivals[3].verdict, Verdict::Admitted);
        assert_eq!(Reason::GlobalLimit.name(), "global_limit");
    }

    #[test]
    fn nothing_at_all_can_be_replayed_too() {
        let mut recording = made(4);
        recording.arrivals.clear();
        let comparison = compare(&recording, &["limits.low=1".parse().unwrap()], 1);
        assert_eq!((comparison.requests, comparison.same.same_decision), (0, 1.0));
    }
}
