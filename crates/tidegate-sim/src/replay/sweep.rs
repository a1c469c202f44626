use super::outcome::{Level, Share};
use super::{Arrival, Outcome, Recording, Verdict};
use crate::agenda::Agenda;
use std::collections::BTreeMap;
use tidegate_core::admission::{MessagePriority, Reason};
use tidegate_core::rng::Rng;

/// Returns the service time of each request if it is admitted, in microseconds. A request that was refused has
/// none: it is drawn from the admitted requests of its priority, else from all admitted ones, else it is 0.
pub(super) fn times(recording: &Recording, seed: u64) -> Vec<u64> {
    let mut known: [Vec<u64>; 4] = Default::default();
    let mut all = Vec::new();
    let admitted = recording.arrivals.iter().filter(|a| a.verdict == Verdict::Admitted);
    for (arrival, took_us) in admitted.filter_map(|arrival| Some((arrival, arrival.took_us?))) {
        known[arrival.priority.index()].push(took_us);
        all.push(took_us);
    }
    let mut rng = Rng::new(seed);
    let mut drawn = |priority: MessagePriority| {
        let own = &known[priority.index()];
        let from = if own.is_empty() { &all } else { own };
        let place = rng.next_u64() as usize % from.len().max(1);
        from.get(place).copied().unwrap_or(0)
    };
    let arrivals = recording.arrivals.iter();
    arrivals.map(|arrival| arrival.took_us.unwrap_or_else(|| drawn(arrival.priority))).collect()
}

/// Lets every request come when it came, and asks `admit` for it; what is let in holds what `admit` gives until
/// its time is over. With the outcome: how many requests were let in or refused as they were in the recording,
/// of how many that admission decided.
pub(super) fn sweep<P>(
    recording: &Recording,
    times: &[u64],
    mut admit: impl FnMut(&Arrival) -> Result<P, Reason>,
) -> (Outcome, u64, u64) {
    let mut ends: Agenda<(P, usize)> = Agenda::default();
    let (mut all, mut own) = (Level::default(), [Level::default(); 4]);
    let mut shares: [Share; 4] = Default::default();
    let (mut same, mut decided) = (0, 0);
    let lasted_us = recording.lasted_us;
    // Virtual time can't be negative: what came before the recording shifts its zero.
    let zero = recording.arrivals.first().map_or(0, |first| first.at_us.min(0));
    let since_zero = |at: u64| at.saturating_sub(zero.unsigned_abs()).min(lasted_us);
    for (arrival, took_us) in recording.arrivals.iter().zip(times) {
        let now = arrival.at_us.abs_diff(zero);
        while ends.next_at().is_some_and(|end| end <= now) {
            let Some((end, (_place, priority))) = ends.next() else { break };
            all.step(since_zero(end), false);
            own[priority].step(since_zero(end), false);
        }
        let place = arrival.priority.index();
        let verdict = match arrival.was_decided().then(|| admit(arrival)) {
            None => arrival.verdict,
            Some(Err(reason)) => Verdict::Refused(reason),
            Some(Ok(permit)) => {
                ends.plan(now.saturating_add(*took_us), (permit, place));
                all.step(since_zero(now), true);
                own[place].step(since_zero(now), true);
                match arrival.verdict {
                    // What refused it then may do so again.
                    other @ Verdict::Other(_) => other,
                    Verdict::Admitted | Verdict::Refused(_) => Verdict::Admitted,
                }
            }
        };
        if arrival.is_counted() {
            shares[place].count(verdict);
            if arrival.was_decided() {
                let was_let_in = |verdict| !matches!(verdict, Verdict::Refused(_));
                decided += 1;
                same += u64::from(was_let_in(verdict) == was_let_in(arrival.verdict));
            }
        }
    }
    while let Some((end, (_place, priority))) = ends.next() {
        all.step(since_zero(end), false);
        own[priority].step(since_zero(end), false);
    }
    (outcome(shares, &all, &own, lasted_us), same, decided)
}

fn outcome(shares: [Share; 4], all: &Level, own: &[Level; 4], lasted_us: u64) -> Outcome {
    let mut outcome = Outcome { all: Share::default(), by_priority: BTreeMap::new() };
    for (priority, mut share) in MessagePriority::ALL.into_iter().zip(shares) {
        share.level(&own[priority.index()], lasted_us);
        let sum = &mut outcome.all;
        sum.asked += share.asked;
        sum.admitted += share.admitted;
        sum.global_limit += share.global_limit;
        sum.priority_limit += share.priority_limit;
        sum.others += share.others;
        if share.asked > 0 {
            outcome.by_priority.insert(priority.name(), share);
        }
    }
    outcome.all.level(all, lasted_us);
    outcome
}
