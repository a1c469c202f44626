use super::place::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::ledger::Ledger;

const TASKS: u32 = 8;
const TURNS: u32 = 200;
const SLOTS: u32 = 3;

/// Eight managers, each with a connection of its own, want three slots two hundred times each.
pub async fn three_slots(place: Place) {
    place.ledger().declare("red", 2).await.unwrap();
    place.ledger().declare("green", 1).await.unwrap();
    let inside = Arc::new(AtomicU32::new(0));
    let most = Arc::new(AtomicU32::new(0));
    let mut crowd = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let (ledger, inside, most) = (place.another().await, inside.clone(), most.clone());
        crowd.spawn(async move {
            let mut fence_last = 0;
            for number in 0..TURNS {
                let holder = request(&format!("t{task}-{number}@1"), &["red", "green"], LONG);
                let lease = turn(&ledger, &holder).await;
                assert!(lease.fence > fence_last, "fences rise");
                fence_last = lease.fence;
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                assert!(now <= SLOTS, "{now} hold {SLOTS} slots");
                tokio::time::sleep(Duration::from_millis(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(ledger.release(&lease).await.unwrap());
            }
        });
    }
    while let Some(done) = crowd.join_next().await {
        done.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), SLOTS, "no slot was left idle all the time");
    for executor in ["red", "green"] {
        assert_eq!(place.ledger().held(executor).await, Ok(0));
    }
}
