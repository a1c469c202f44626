use super::support::{blocks, fill, kv, ms, requests, router};
use std::sync::Arc;
use std::thread;
use tidegate::routing::{
    Answer, Ask, BusyThresholds, Charge, LoadReport, MonitorConfig, OnSilence, Overload, Pick,
    PushRouter, RouteError, Threshold, WorkerMonitor,
};

#[test]
fn a_late_report_admits_nothing_twice_and_is_put_right_by_the_next() {
    let (router, ids) = router(Pick::PowerOfTwo, blocks(0.5), 1);
    router.monitor().report(ids[0], 0, kv(0, 64), ms(0));
    let held = fill(&router, ms(1_000));
    assert_eq!(held.len(), 32);
    // Made before they arrived, and heard after: it does not have them.
    router.monitor().report(ids[0], 0, kv(0, 64), ms(1_001));
    assert_eq!(fill(&router, ms(1_200)).len(), 0);
    drop(held);
    router.monitor().report(ids[0], 0, kv(0, 64), ms(1_500));
    assert_eq!(fill(&router, ms(1_600)).len(), 32);
}

#[test]
fn a_report_that_never_comes_again_expires_and_the_upstream_is_used_again() {
    let (router, ids) = router(Pick::PowerOfTwo, blocks(0.5), 1);
    router.monitor().report(ids[0], 0, kv(99, 100), ms(0));
    let refused = router.route_at(&Ask::default(), 1, ms(100)).unwrap_err();
    let RouteError::Overloaded(overload) = refused else { panic!("{refused}") };
    assert_eq!(overload.threshold, Some(Threshold::ActiveDecodeBlocks));
    assert!(router.monitor().tick(ms(4_000)).is_empty(), "not yet");
    assert_eq!(router.monitor().tick(ms(6_000)).len(), 1);
    assert!(!router.monitor().upstreams()[0].load_known, "and that is visible");
    assert!(router.route_at(&Ask::default(), 1, ms(6_100)).is_ok());
}

#[tokio::test]
async fn a_monitor_that_is_watched_lets_reports_expire_by_itself() {
    let ttl = ms(1);
    let monitor = WorkerMonitor::new(MonitorConfig { report_ttl: ttl, ..MonitorConfig::default() });
    let id = monitor.add_upstream("w", None);
    monitor.report(id, 0, kv(1, 100), monitor.now());
    assert!(monitor.upstreams()[0].load_known);
    let expired = async {
        while monitor.upstreams()[0].load_known {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = monitor.watch(ttl) => panic!("it ends never"),
        () = expired => {}
    }
}

#[test]
fn silence_can_mean_busy_and_ends_with_a_report() {
    let config = MonitorConfig {
        thresholds: blocks(0.5),
        on_silence: OnSilence::Busy,
        ..MonitorConfig::default()
    };
    let monitor = Arc::new(WorkerMonitor::new(config));
    let id = monitor.add_upstream("silent", None);
    let router = PushRouter::new(Arc::clone(&monitor), Pick::PowerOfTwo);
    assert!(matches!(router.route(&Ask::default()), Err(RouteError::Overloaded(_))));
    monitor.report(id, 0, kv(0, 100), monitor.now());
    assert!(router.route(&Ask::default()).is_ok());
}

#[test]
fn zeros_of_an_upstream_that_is_starting_are_told_apart_from_idleness_and_from_overload() {
    let (router, ids) = router(Pick::PowerOfTwo, blocks(0.5), 1);
    router.monitor().report(ids[0], 0, kv(0, 0), ms(0));
    let refused = router.route_at(&Ask::default(), 1, ms(100)).unwrap_err();
    assert_eq!(refused, RouteError::NoUpstreams { total: 1, starting: 1 });
    router.monitor().report(ids[0], 0, kv(0, 100), ms(200));
    assert!(router.route_at(&Ask::default(), 1, ms(300)).is_ok());
}

#[test]
fn an_upstream_that_vanishes_between_pick_and_send_gives_its_place_back() {
    let (router, ids) = router(Pick::PowerOfTwo, requests(1), 2);
    let first = router.route(&Ask::default()).unwrap();
    let gone = first.upstream().id();
    router.monitor().remove_upstream(gone);
    // The caller finds out when it sends, and asks again without it.
    first.answered(Answer::Refused, router.monitor().now());
    drop(first);
    let second = router.route(&Ask { not: &[gone], ..Ask::default() }).unwrap();
    assert_ne!(second.upstream().id(), gone);
    assert!(matches!(router.route(&Ask::default()), Err(RouteError::Overloaded(_))));
    drop(second);
    assert!(router.route(&Ask::default()).is_ok());
    assert_eq!(ids.len(), 2);
}

#[test]
fn when_all_are_down_one_is_tried_and_none_twice() {
    let (router, ids) = router(Pick::PowerOfTwo, requests(1), 2);
    for id in &ids {
        assert!(router.monitor().set_up(*id, false));
    }
    let first = router.route(&Ask::default()).unwrap();
    let not = [first.upstream().id()];
    let second = router.route(&Ask { not: &not, ..Ask::default() }).unwrap();
    assert_ne!(second.upstream().id(), not[0]);
    let none = router.route(&Ask { not: &ids, ..Ask::default() }).unwrap_err();
    assert_eq!(none, RouteError::Exhausted);
}

#[test]
fn what_is_down_takes_no_more_than_it_may_either() {
    let (router, ids) = router(Pick::PowerOfTwo, requests(8), 1);
    router.monitor().set_up(ids[0], false);
    let held: Vec<_> = (0..100).filter_map(|_| router.route(&Ask::default()).ok()).collect();
    assert_eq!(held.len(), 8);
    let refused = router.route(&Ask::default()).unwrap_err();
    assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 1, total: 1, .. })));
}

#[test]
fn a_request_that_is_too_large_for_who_is_free_is_overload_and_not_absence() {
    let (router, ids) = router(Pick::PowerOfTwo, blocks(0.5), 2);
    router.monitor().report(ids[0], 0, kv(45, 100), ms(0));
    router.monitor().report(ids[1], 0, kv(0, 0), ms(0));
    let small = router.route(&Ask::default()).unwrap();
    let large = Ask { charge: Charge::new(40, 1), ..Ask::default() };
    let refused = router.route(&large).unwrap_err();
    assert!(matches!(refused, RouteError::Overloaded(Overload { busy: 1, total: 2, .. })));
    drop(small);
}

#[test]
fn a_dry_run_is_counted_nowhere_and_goes_where_the_request_says() {
    let (router, _) = router(Pick::Direct, requests(1), 3);
    let ask = Ask { direct: Some("upstream-2"), dry_run: true, ..Ask::default() };
    let _held = router.route(&ask).unwrap();
    assert!(router.route(&ask).is_err());
    assert_eq!(router.route_anyway(&ask).unwrap().upstream().name(), "upstream-2");
    assert_eq!(router.monitor().models()[0].refused, 0);
}

#[test]
fn without_any_upstream_the_answer_is_not_overload() {
    let (router, _) = router(Pick::PowerOfTwo, requests(1), 0);
    let refused = router.route(&Ask::default()).unwrap_err();
    assert_eq!(refused, RouteError::NoUpstreams { total: 0, starting: 0 });
}

#[test]
fn a_threshold_changed_under_load_holds_at_once_in_both_directions() {
    let (router, _) = router(Pick::PowerOfTwo, requests(10), 2);
    let change = |most: Option<u64>| {
        let change = |old| BusyThresholds { active_requests: most, ..old };
        router.monitor().change_thresholds("*", change).unwrap();
    };
    let held = fill(&router, ms(100));
    assert_eq!(held.len(), 20);
    change(Some(16));
    assert_eq!(fill(&router, ms(200)).len(), 12, "more room at once");
    change(Some(4));
    assert_eq!(fill(&router, ms(300)).len(), 0, "none, and nothing is taken away");
    drop(held);
    assert_eq!(fill(&router, ms(400)).len(), 8);
    change(None);
    let held: Vec<_> = (0..500).map(|_| router.route(&Ask::default())).collect();
    assert!(held.iter().all(Result::is_ok), "cleared");
}

#[test]
fn thresholds_and_load_change_together_without_losing_a_place() {
    let (router, ids) = router(Pick::PowerOfTwo, requests(8), 4);
    thread::scope(|scope| {
        for _ in 0..4 {
            let router = &router;
            scope.spawn(move || {
                for _ in 0..5_000 {
                    drop(router.route(&Ask::default()));
                }
            });
        }
        let (monitor, ids) = (router.monitor(), &ids);
        scope.spawn(move || {
            for n in 0..2_000_u64 {
                let most = Some(1 + n % 16);
                let change = |old| BusyThresholds { active_requests: most, ..old };
                monitor.change_thresholds("*", change).unwrap();
                let report = LoadReport { running: Some(n % 8), ..LoadReport::default() };
                monitor.report(ids[(n % 4) as usize], 0, report, monitor.now());
                monitor.set_up(ids[(n % 3) as usize], n % 2 == 0);
            }
        });
    });
    for id in &ids {
        router.monitor().set_up(*id, true);
        router.monitor().report(
            *id,
            0,
            LoadReport { running: Some(0), ..Default::default() },
            ms(600_000),
        );
    }
    router.monitor().change_thresholds("*", |_| requests(8)).unwrap();
    assert!(router.monitor().upstreams().iter().all(|upstream| upstream.in_flight == 0));
    assert_eq!(fill(&router, ms(600_100)).len(), 32);
}

#[test]
fn who_refuses_fast_does_not_attract_requests() {
    let (router, ids) = router(Pick::PowerOfTwo, BusyThresholds::OFF, 2);
    let mut refusals = 0;
    for n in 0..1_000_u64 {
        let now = ms(n);
        let assignment =
            router.route_at(&Ask::default(), n.wrapping_mul(0x9E37_79B9_7F4A_7C15), now);
        let assignment = assignment.unwrap();
        let refuses = assignment.upstream().id() == ids[0];
        refusals += u32::from(refuses);
        let answer = if refuses { Answer::Refused } else { Answer::Began(ms(50)) };
        assignment.answered(answer, now);
    }
    assert!(refusals < 20, "{refusals} of 1000 went to the one that fails fast");
    // And it is not forgotten for ever.
    let later = (0..1_000_u64).map(|n| {
        let now = ms(600_000 + n);
        let assignment = router.route_at(&Ask::default(), n << 32 | n, now).unwrap();
        assignment.answered(Answer::Began(ms(50)), now);
        u32::from(assignment.upstream().id() == ids[0])
    });
    assert!(later.sum::<u32>() > 100);
}
