//! The routing policy over a pool in memory: slots are exact, exclusions hold, and a refusal says why.

use std::time::Duration;
use tidegate_core::admission::RetryBounds;
use tidegate_core::rng::Rng;
use tidegate_core::routing::{
    Availability, AvailabilityEntry, BusyThresholds, Charge, ChargeTicket, Demand, ExpectedWait,
    LoadAccount, LoadReport, OnSilence, Overload, Pick, Pool, RouteError, RouteQuery,
    RoutingPolicy, ServiceEstimator, Threshold,
};

struct Upstreams {
    accounts: Vec<(LoadAccount, AvailabilityEntry)>,
    up: Vec<bool>,
    thresholds: BusyThresholds,
    availability: Availability,
    demand: Demand,
    excluded: Vec<usize>,
    now: Duration,
}

impl Upstreams {
    /// Upstreams that take `slots` requests each.
    fn new(count: usize, slots: u64) -> Self {
        let thresholds = BusyThresholds { active_requests: Some(slots), ..BusyThresholds::OFF };
        let account =
            |index| (LoadAccount::new(OnSilence::Free), AvailabilityEntry::new(index, thresholds));
        let mut upstreams = Self {
            accounts: (0..count).map(account).collect(),
            up: vec![true; count],
            thresholds,
            availability: Availability::new(count),
            demand: Demand::new(RetryBounds::default()),
            excluded: Vec::new(),
            now: Duration::ZERO,
        };
        (0..count).for_each(|index| upstreams.publish(index));
        upstreams
    }

    fn publish(&mut self, index: usize) {
        let (account, entry) = &mut self.accounts[index];
        let shown = entry.judge(account, self.up[index]);
        entry.publish(&self.availability, shown, account.requests());
    }

    fn set_up(&mut self, index: usize, up: bool) {
        self.up[index] = up;
        self.publish(index);
    }

    /// Releases a slot that was used for 800 ms.
    fn release(&mut self, (index, ticket): (usize, ChargeTicket)) {
        self.accounts[index].0.release(ticket);
        self.demand.end(self.now, Some(Duration::from_millis(800)));
        self.publish(index);
    }
}

impl Pool for Upstreams {
    type Reservation = (usize, ChargeTicket);

    fn availability(&self) -> &Availability {
        &self.availability
    }

    fn demand(&self) -> &Demand {
        &self.demand
    }

    fn is_excluded(&self, index: usize) -> bool {
        self.excluded.contains(&index)
    }

    fn expected_wait(&self, index: usize) -> ExpectedWait {
        let requests = self.accounts[index].0.outstanding();
        ExpectedWait { requests, ..ExpectedWait::default() }
    }

    fn try_reserve(&mut self, index: usize) -> Option<(usize, ChargeTicket)> {
        let thresholds = self.thresholds;
        let ticket = self.accounts[index].0.try_charge(Charge::LEAST, &thresholds).ok()?;
        self.demand.begin(self.now);
        self.publish(index);
        Some((index, ticket))
    }
}

fn query(draw: u64) -> RouteQuery {
    RouteQuery { dry_run: false, draw, now: Duration::ZERO }
}

fn policy(pick: Pick) -> RoutingPolicy {
    RoutingPolicy::new(pick)
}

/// Routes until a refusal.
fn fill(
    policy: &RoutingPolicy,
    upstreams: &mut Upstreams,
) -> (Vec<(usize, ChargeTicket)>, RouteError) {
    let (mut rng, mut reserved) = (Rng::new(7), Vec::new());
    loop {
        match policy.route(upstreams, &query(rng.next_u64())) {
            Ok(slot) => reserved.push(slot),
            Err(error) => return (reserved, error),
        }
    }
}

#[test]
fn every_pick_fills_exactly_all_slots_and_then_says_which_threshold_is_exceeded() {
    for pick in Pick::ALL {
        let mut upstreams = Upstreams::new(70, 3);
        let policy = policy(pick);
        let (mut reserved, refused) = fill(&policy, &mut upstreams);
        assert_eq!(reserved.len(), 210, "{pick:?}");
        let RouteError::Overloaded(Overload { busy, total, threshold, .. }) = refused else {
            panic!("{pick:?}: {refused}");
        };
        assert_eq!((busy, total, threshold), (70, 70, Some(Threshold::ActiveRequests)));
        assert_eq!((upstreams.demand.in_flight(), upstreams.demand.refused()), (210, 1));
        let last = reserved.pop().expect("210 slots");
        let freed = last.0;
        upstreams.release(last);
        let again = policy.route(&mut upstreams, &query(3)).map(|(index, _)| index);
        assert_eq!(again, Ok(freed), "{pick:?}: the only free slot is found from any draw");
    }
}

#[test]
fn an_excluded_upstream_gets_nothing() {
    for pick in Pick::ALL {
        let mut upstreams = Upstreams::new(3, 2);
        upstreams.excluded = vec![1];
        let (reserved, refused) = fill(&policy(pick), &mut upstreams);
        assert_eq!(reserved.len(), 4, "{pick:?}");
        assert!(reserved.iter().all(|(index, _)| *index != 1));
        assert!(matches!(refused, RouteError::Overloaded(_)), "{refused}");
        upstreams.excluded = vec![0, 1, 2];
        let none = policy(pick).route(&mut upstreams, &query(1)).map(|(index, _)| index);
        assert_eq!(none, Err(RouteError::Exhausted));
    }
}

#[test]
fn when_all_are_down_they_are_tried_within_their_thresholds() {
    let mut upstreams = Upstreams::new(2, 1);
    (0..2).for_each(|index| upstreams.set_up(index, false));
    let policy = policy(Pick::PowerOfTwo);
    let room = |upstreams: &Upstreams| RoutingPolicy::has_room(&upstreams.availability);
    assert!(room(&upstreams), "one that is down is tried");
    let (reserved, refused) = fill(&policy, &mut upstreams);
    assert_eq!(reserved.len(), 2);
    assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 2, total: 2, .. })));
    upstreams.set_up(0, true);
    assert!(!room(&upstreams), "the only one that is up is busy");
}

#[test]
fn a_named_upstream_is_the_only_one_that_is_tried() {
    let mut upstreams = Upstreams::new(2, 1);
    let policy = policy(Pick::Direct);
    let to = |upstreams: &mut Upstreams, index| {
        policy.route_to(upstreams, index, &query(0)).map(|(index, _)| index)
    };
    assert_eq!(to(&mut upstreams, Some(1)), Ok(1));
    assert_eq!(to(&mut upstreams, None), Err(RouteError::UnknownUpstream));
    let refused = to(&mut upstreams, Some(1)).unwrap_err();
    assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 1, total: 1, .. })));
    upstreams.excluded = vec![0];
    assert_eq!(to(&mut upstreams, Some(0)), Err(RouteError::Exhausted));
}

#[test]
fn a_dry_run_counts_no_refusal_and_still_finds_an_upstream() {
    let mut upstreams = Upstreams::new(2, 1);
    let policy = policy(Pick::PowerOfTwo);
    let (_reserved, _) = fill(&policy, &mut upstreams);
    let dry = RouteQuery { dry_run: true, ..query(5) };
    let counted = upstreams.demand.refused();
    assert!(policy.route(&mut upstreams, &dry).is_err());
    assert_eq!(upstreams.demand.refused(), counted);
    upstreams.excluded = vec![0];
    assert_eq!(policy.choose_anyway(&upstreams, &dry), Some(1));
    upstreams.excluded = vec![0, 1];
    assert_eq!(policy.choose_anyway(&upstreams, &dry), None);
}

#[test]
fn without_a_ready_upstream_the_refusal_says_so() {
    let none = policy(Pick::Random).route(&mut Upstreams::new(0, 1), &query(1));
    assert_eq!(none.map(|_| ()), Err(RouteError::NoUpstreams { total: 0, starting: 0 }));
    let mut upstreams = Upstreams::new(1, 1);
    let starting = LoadReport { kv_total_blocks: Some(0), ..LoadReport::default() };
    upstreams.accounts[0].0.record_report(0, starting, Duration::from_secs(1));
    upstreams.publish(0);
    let none = policy(Pick::Random).route(&mut upstreams, &query(1)).map(|_| ());
    assert_eq!(none, Err(RouteError::NoUpstreams { total: 1, starting: 1 }));
}

#[test]
fn advice_follows_the_time_of_requests_and_each_client_has_its_own_turn() {
    let mut upstreams = Upstreams::new(1, 8);
    let policy = policy(Pick::PowerOfTwo);
    let mut service = ServiceEstimator::default();
    let (mut reserved, _) = fill(&policy, &mut upstreams);
    for tick in 0..200_u64 {
        upstreams.now = Duration::from_millis(1_000 + tick * 100);
        if let Some(slot) = reserved.pop() {
            upstreams.release(slot);
            reserved.extend(policy.route(&mut upstreams, &query(tick)));
        }
        upstreams.demand.observe(&mut service, upstreams.now);
    }
    // 8 + 3·√8 turns in 800 ms: one every 48.5 ms.
    let (demand, now) = (&upstreams.demand, upstreams.now);
    assert_eq!(demand.advice(now).as_millis(), 48);
    let waits = [0; 16].map(|_| demand.refuse(now).as_secs_f64() / 0.0485);
    for (turn, wait) in (1..).zip(waits) {
        assert!((0.75..=1.25).contains(&(wait / f64::from(turn))), "{turn}: {waits:?}");
    }
    let next = demand.advice(now);
    let dry = RouteQuery { dry_run: true, now, ..query(1) };
    assert!(policy.route(&mut upstreams, &dry).is_err());
    assert_eq!(upstreams.demand.advice(now), next, "a dry run takes no turn");
}
