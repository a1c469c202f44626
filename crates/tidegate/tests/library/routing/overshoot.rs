use super::support::{blocks, kv, ms, requests, router};
use std::sync::{Arc, Barrier};
use std::thread;
use tidegate::routing::{Ask, BusyThresholds, Charge, LoadReport, Pick, PushRouter};

const AT_ONCE: u64 = 200;
const THREADS: u64 = 8;

/// Returns the number of 200 requests at the same moment that get through.
fn admitted_at_once(router: &Arc<PushRouter>) -> usize {
    let start = Arc::new(Barrier::new(THREADS as usize));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (router, start) = (Arc::clone(router), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                let chances = (0..AT_ONCE / THREADS).map(|n| (n * THREADS + thread) * 0x9E37_79B9);
                let ask = Ask::default();
                chances.filter_map(|chance| router.route_at(&ask, chance, ms(100)).ok()).collect()
            })
        })
        .collect();
    let held: Vec<Vec<_>> =
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect();
    held.iter().map(Vec::len).sum()
}

#[test]
fn two_hundred_at_once_on_32_free_places_admit_exactly_32_for_every_pick() {
    for pick in Pick::ALL {
        for round in 0..20 {
            let (router, _) = router(pick, requests(8), 4);
            assert_eq!(admitted_at_once(&router), 32, "{pick:?}, requests, round {round}");
        }
    }
}

#[test]
fn the_same_by_kv_blocks_on_top_of_what_is_reported() {
    for pick in Pick::ALL {
        let (router, ids) = router(pick, blocks(0.5), 4);
        for id in &ids {
            router.monitor().report(*id, 0, kv(42, 100), ms(0));
        }
        assert_eq!(admitted_at_once(&router), 32, "{pick:?}");
    }
}

#[test]
fn the_same_with_two_ranks_that_are_not_equally_full() {
    for pick in Pick::ALL {
        for round in 0..20 {
            let (router, ids) = router(pick, blocks(0.5), 2);
            for id in &ids {
                router.monitor().report(*id, 0, kv(48, 100), ms(0));
                router.monitor().report(*id, 1, kv(36, 100), ms(0));
            }
            assert_eq!(admitted_at_once(&router), 32, "{pick:?}, round {round}");
        }
    }
}

#[test]
fn the_same_by_prefill_tokens() {
    let thresholds = BusyThresholds { active_prefill_tokens: Some(1_600), ..BusyThresholds::OFF };
    let (router, ids) = router(Pick::PowerOfTwo, thresholds, 2);
    for id in &ids {
        let report = LoadReport { active_prefill_tokens: Some(0), ..LoadReport::default() };
        router.monitor().report(*id, 0, report, ms(0));
    }
    let ask = Ask { charge: Charge::new(1, 100), ..Ask::default() };
    let held: Vec<_> =
        (0..AT_ONCE).filter_map(|chance| router.route_at(&ask, chance, ms(100)).ok()).collect();
    assert_eq!(held.len(), 32);
}
