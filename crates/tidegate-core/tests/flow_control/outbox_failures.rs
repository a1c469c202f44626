//! Failures of the queue in AD-32, one test each, and the guarantees of the drop policies.

use tidegate_core::admission::MessageClass::{Control, Data, Dispatch, Telemetry};
use tidegate_core::outbox::{
    DestinationQueueStats, QueueConfig, QueueState, RefusedReason, RobustQueue, SenderStats,
};
use tidegate_core::signal::BackpressureLevel;

fn queue<T>(primary_size: usize, overflow_size: usize) -> RobustQueue<T> {
    let config = QueueConfig { primary_size, overflow_size, ..QueueConfig::default() };
    RobustQueue::new(config).expect("the sizes are within range")
}

fn drain<T>(queue: &mut RobustQueue<T>) -> Vec<T> {
    std::iter::from_fn(|| queue.get()).collect()
}

/// The origin delivers its overflow, which is newer, before its primary.
#[test]
fn what_is_older_is_delivered_before_what_is_newer() {
    let mut queue = queue(500, 100);
    for number in 0..600 {
        let _ = queue.put(Data, number).expect("there is room");
    }
    assert_eq!(drain(&mut queue), (0..600).collect::<Vec<_>>());
}

/// In the origin, when as much arrives as leaves, none of the 500 in the primary leaves in 10,000 gets.
#[test]
fn nothing_starves_when_as_much_arrives_as_leaves() {
    let mut queue = queue(500, 100);
    for number in 0..600 {
        let _ = queue.put(Data, number).expect("there is room");
    }
    for number in 0..10_000 {
        assert_eq!(queue.get(), Some(number), "the oldest leaves first");
        let put = queue.put(Data, number + 600).expect("there is room");
        assert_eq!(put.dropped, None);
    }
}

/// The origin says "accepted" when it is saturated, drops, and counts no drop.
#[test]
fn every_drop_is_returned_and_counted() {
    let mut queue = queue(500, 100);
    let mut dropped = Vec::new();
    for number in 0..1000 {
        dropped.extend(queue.put(Data, number).expect("data makes room for itself").dropped);
    }
    assert_eq!(dropped, (0..400).collect::<Vec<_>>());
    let stats = queue.stats();
    assert_eq!((stats.total_enqueued, stats.total_dropped), (1000, 400));
    assert_eq!((stats.data_dropped, stats.telemetry_dropped), (400, 0));
}

/// The origin stores a priority and never reads it.
#[test]
fn the_class_decides_who_goes_and_who_stays() {
    let mut queue = queue(4, 0);
    for (class, message) in [(Data, "d1"), (Telemetry, "t1"), (Dispatch, "j1"), (Data, "d2")] {
        let _ = queue.put(class, message).expect("there is room");
    }
    let dropped = |put: Result<tidegate_core::outbox::Put<_>, _>| put.map(|put| put.dropped).ok();
    assert_eq!(dropped(queue.put(Data, "d3")), Some(Some("t1")), "telemetry goes first");
    let telemetry = queue.put(Telemetry, "t2").expect_err("it may push nothing else out");
    assert_eq!((telemetry.value, telemetry.reason), ("t2", RefusedReason::NothingToDrop));
    assert_eq!(dropped(queue.put(Data, "d4")), Some(Some("d1")), "then the oldest data");
    let job = queue.put(Dispatch, "j2").expect_err("it pushes nothing out");
    assert_eq!((job.value, job.reason), ("j2", RefusedReason::QueueFull));
    assert_eq!(drain(&mut queue), ["j1", "d2", "d3", "d4"]);
}

#[test]
fn data_is_handed_back_when_all_that_waits_is_dispatch() {
    let mut queue = queue(2, 1);
    for number in 0..3 {
        let _ = queue.put(Dispatch, number).expect("there is room");
    }
    let refused = queue.put(Data, 9).expect_err("an accepted dispatch is never dropped");
    assert_eq!((refused.value, refused.reason), (9, RefusedReason::NothingToDrop));
    assert_eq!(refused.state, QueueState::Saturated);
    assert!(refused.to_string().contains("wait 500ms"), "{refused}");
    assert_eq!(drain(&mut queue), [0, 1, 2]);
}

#[test]
fn control_has_a_lane_that_data_can_not_fill_and_is_served_first() {
    let config = QueueConfig {
        primary_size: 2,
        overflow_size: 0,
        control_size: 2,
        ..QueueConfig::default()
    };
    let mut queue = RobustQueue::new(config).expect("it is valid");
    for number in 0..10 {
        let _ = queue.put(Data, number).expect("data makes room for itself");
    }
    for number in [100, 101] {
        let put = queue.put(Control, number).expect("its lane is empty");
        assert_eq!(put.dropped, None);
    }
    let refused = queue.put(Control, 102).expect_err("its lane is full");
    assert_eq!((refused.value, refused.reason), (102, RefusedReason::ControlLaneFull));
    assert_eq!(drain(&mut queue), [100, 101, 8, 9]);
}

#[test]
fn a_failed_send_goes_back_to_the_head_in_order() {
    let mut queue = queue(10, 0);
    for number in 0..6 {
        let _ = queue.put(Data, number).expect("there is room");
    }
    let mut batch = Vec::new();
    assert_eq!(queue.get_batch(3, &mut batch), 3);
    while let Some(number) = batch.pop() {
        let _ = queue.put_back(Data, number).expect("there is room");
    }
    assert_eq!(drain(&mut queue), [0, 1, 2, 3, 4, 5]);
    assert_eq!(queue.stats().total_enqueued, 6, "nothing counts twice");
}

#[test]
fn a_failed_send_that_finds_the_queue_full_meets_the_policy_of_its_class() {
    let full = || {
        let mut queue = queue(2, 0);
        let _ = queue.put(Data, "d").expect("there is room");
        let _ = queue.put(Telemetry, "t").expect("there is room");
        queue
    };
    let mut for_dispatch = full();
    let put = for_dispatch.put_back(Dispatch, "old job").expect("it was accepted before");
    assert_eq!(put.dropped, Some("t"));
    let put = for_dispatch.put_back(Dispatch, "older job").expect("it was accepted before");
    assert_eq!(put.dropped, Some("d"));
    let refused = for_dispatch.put_back(Dispatch, "oldest job").expect_err("all is dispatch");
    assert_eq!(refused.value, "oldest job");
    assert_eq!(drain(&mut for_dispatch), ["older job", "old job"]);

    let mut for_data = full();
    let put = for_data.put_back(Data, "old data").expect("telemetry makes room");
    assert_eq!(put.dropped, Some("t"));
    let refused = for_data.put_back(Data, "older data").expect_err("newer data stays");
    assert_eq!((refused.value, refused.reason), ("older data", RefusedReason::NewerFilledQueue));

    let refused = full().put_back(Telemetry, "old").expect_err("newer telemetry stays");
    assert_eq!(refused.value, "old");
}

/// The snapshot has the names that dashboards of this design use.
#[test]
fn snapshots_have_the_names_of_the_design() {
    let mut queue = queue(500, 100);
    for number in 0..600 {
        let _ = queue.put(Data, number).expect("there is room");
    }
    let stats = DestinationQueueStats {
        destination_host: "10.0.0.7".to_owned(),
        destination_port: 9000,
        queue: queue.stats(),
        sender: SenderStats::default(),
    };
    assert_eq!(stats.queue.backpressure_level, BackpressureLevel::Reject);
    let fields = serde_json::to_value(&stats).expect("it is plain data");
    let named = [
        ("destination_host", "\"10.0.0.7\""),
        ("destination_port", "9000"),
        ("primary_size", "500"),
        ("overflow_size", "100"),
        ("state", "\"SATURATED\""),
        ("total_enqueued", "600"),
        ("total_dropped", "0"),
        ("backpressure_level", "\"REJECT\""),
    ];
    for (name, value) in named {
        assert_eq!(fields[name].to_string(), value, "{name}");
    }
}
