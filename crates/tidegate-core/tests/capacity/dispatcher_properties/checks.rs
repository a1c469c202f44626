use super::model::{Model, View, next};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::capacity::{
    Dispatcher, ExecutorId, ExecutorRuntimes, ExecutorState, Order, Placement, QueuePosition,
    RuntimeId, Ticket,
};

/// Overtakes that [`Placement::Queue`] allows for each slot of the fleet.
const OVERTAKES_PER_SLOT: u64 = 8;

/// Checks each order in turn against the attempts that still wait.
pub fn orders(model: &Model, before: &Dispatcher, orders: &[Order]) {
    let mut waiting: BTreeMap<Ticket, (QueuePosition, RuntimeId)> = before
        .queue()
        .tickets()
        .map(|(ticket, place, runtime)| (ticket, (place, runtime)))
        .collect();
    for order in orders {
        let (ticket, serves) = match order {
            Order::Execute { ticket, executor } | Order::Reserve { ticket, executor } => {
                let belief = before.fleet().get(*executor).unwrap();
                assert!(belief.is_open(model.now), "{order:?} of one that is not to be asked");
                (*ticket, &belief.serves)
            }
            // Those in the ledger's line ask again, or leave it when nobody is there to be asked for.
            Order::Lease { ticket, .. } | Order::Unlease { ticket }
                if model.views[ticket] == View::InLedgerLine =>
            {
                continue;
            }
            Order::Lease { ticket, .. } => (*ticket, &ExecutorRuntimes::All),
            Order::Unlease { .. } => panic!("{order:?} is no placing"),
        };
        let (place, runtime) = waiting.remove(&ticket).expect("one that waits");
        assert!(serves.includes(runtime), "{order:?} of what it can't run");
        let of_lane = waiting.values().filter(|(it, other)| {
            *other == runtime && it.priority == place.priority && it.seq < place.seq
        });
        let left_behind = waiting.values().filter(|(_, other)| serves.includes(*other));
        match model.placement {
            Placement::Pull | Placement::Reserve => {
                let first = left_behind.map(|(it, _)| *it).min();
                assert!(first.is_none_or(|it| place < it), "{order:?} overtakes {first:?}");
            }
            Placement::Queue => {
                let slots = u64::from(before.fleet().slots());
                for (other, _) in left_behind {
                    assert!(other.priority >= place.priority, "{order:?} before a more urgent");
                    let is_same = other.priority == place.priority;
                    let overtakes = place.seq.saturating_sub(other.seq);
                    assert!(!is_same || overtakes <= slots * OVERTAKES_PER_SLOT, "{order:?}");
                }
            }
            Placement::Optimistic => {
                assert_eq!(of_lane.count(), 0, "{order:?} overtakes");
                let urgent = left_behind.filter(|(it, _)| it.priority < place.priority);
                assert_eq!(urgent.count(), 0, "{order:?} before a more urgent");
            }
            Placement::Semaphore => assert_eq!(of_lane.count(), 0, "{order:?} overtakes"),
        }
    }
}

pub fn after_placing(model: &Model) {
    everyone_is_in_one_place(model);
    nobody_waits_beside_a_slot(model);
    nothing_happens_before_the_wake(model);
}

fn everyone_is_in_one_place(model: &Model) {
    let in_line: Vec<_> = model.dispatcher.queue().tickets().map(|(it, ..)| it).collect();
    let waits = model.views.iter().filter(|(_, view)| **view == View::Waits);
    assert_eq!(in_line, waits.map(|(it, _)| *it).collect::<Vec<_>>(), "{}", model.placement);
    for (ticket, place, runtime) in model.dispatcher.queue().tickets() {
        assert_eq!((place.priority, runtime), model.wants[&ticket]);
    }
    for (id, belief) in model.dispatcher.fleet().iter() {
        let there = model.views.values().filter(|view| {
            matches!(view, View::Reserves(at) | View::Sent(at) | View::Runs(at) if *at == id)
        });
        assert_eq!(belief.own as usize, there.count(), "{} {id:?}", model.placement);
    }
}

fn nobody_waits_beside_a_slot(model: &Model) {
    let (line, fleet, now) = (model.dispatcher.queue(), model.dispatcher.fleet(), model.now);
    let has_room = |(_, it): &(ExecutorId, &ExecutorState)| match model.placement {
        Placement::Pull | Placement::Reserve | Placement::Queue => it.free(now) > 0,
        Placement::Optimistic => it.is_open(now) && it.own < it.max,
        Placement::Semaphore => false,
    };
    for (id, belief) in fleet.iter().filter(has_room) {
        let head = line.head(&belief.serves);
        assert_eq!(head, None, "{}: {id:?} has room for it", model.placement);
    }
    if model.placement == Placement::Semaphore && now >= model.ledger_paused_until {
        for (_, _, runtime) in line.tickets() {
            let asking = model.views.iter().filter(|(ticket, view)| {
                matches!(view, View::AsksLedger | View::InLedgerLine)
                    && model.wants[ticket].1 == runtime
            });
            let free: u32 = fleet.open(runtime, now).map(|(_, it)| it.free(now)).sum();
            let nobody = fleet.open(runtime, now).next().is_none();
            assert!(nobody || asking.count() > free as usize, "{runtime:?} could ask");
        }
    }
}

fn nothing_happens_before_the_wake(model: &Model) {
    let mut dispatcher = model.dispatcher.clone();
    let wake = dispatcher.next_wake(model.now);
    let just_before = match wake {
        Some(wake) => {
            assert!(wake > model.now, "a wake that is over would be one for ever");
            wake - Duration::from_nanos(1)
        }
        None => model.now + Duration::from_secs(3_600),
    };
    let mut state = 3;
    let early = dispatcher.orders(just_before, &mut || next(&mut state));
    assert!(early.is_empty(), "{}: {early:?} is missed until {wake:?}", model.placement);
}
