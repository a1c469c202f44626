//! Requests of others and requests that wait at the server, by its reports.

use std::time::Duration;
use tidegate_core::routing::{
    BusyThresholds, Charge, ChargeTicket, LoadAccount, LoadReport, OnSilence, Standing, Threshold,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn send(account: &mut LoadAccount, now: Duration) -> ChargeTicket {
    let mut ticket = account.charge_anyway(Charge::LEAST);
    account.sent(&mut ticket, now);
    ticket
}

fn requests(running: u64, waiting: u64) -> LoadReport {
    LoadReport { running: Some(running), waiting: Some(waiting), ..LoadReport::default() }
}

fn of_hundred(active: u64, report: LoadReport) -> LoadReport {
    LoadReport { active_decode_blocks: Some(active), kv_total_blocks: Some(100), ..report }
}

#[test]
fn requests_at_an_upstream_count_once_and_those_of_others_too() {
    let mut account = LoadAccount::new(OnSilence::Free);
    let first: Vec<_> = (0..8).map(|_| send(&mut account, ms(1_000))).collect();
    // Made just after they were sent, and it has them all.
    account.record_report(0, requests(8, 0), ms(1_010));
    assert_eq!(account.occupancy(), 8);
    account.record_report(0, requests(8, 5), ms(1_500));
    assert_eq!(account.occupancy(), 13, "five of another sender");
    assert!(account.has_queue());
    first.into_iter().for_each(|ticket| account.release(ticket));
    assert_eq!(account.occupancy(), 5);
    // Asked for while the last of ours was there, and read after its end.
    let last = send(&mut account, ms(2_000));
    let _next = send(&mut account, ms(2_260));
    account.release(last);
    account.record_report(0, requests(1, 0), ms(2_200));
    assert_eq!(account.occupancy(), 1);
    let _charged = account.charge_anyway(Charge::LEAST);
    account.record_report(0, requests(1, 0), ms(3_000));
    assert_eq!(account.occupancy(), 2, "one that is not sent is in no report");
}

#[test]
fn requests_are_what_is_there_even_if_a_report_says_less() {
    let thresholds = BusyThresholds { active_requests: Some(32), ..BusyThresholds::OFF };
    let mut account = LoadAccount::new(OnSilence::Free);
    let sent: Vec<_> = (0..32).map(|_| send(&mut account, ms(100))).collect();
    account.record_report(0, requests(0, 0), ms(900));
    assert_eq!(account.requests(), 32);
    let busy = Standing::Busy(Threshold::ActiveRequests);
    assert_eq!(account.standing(Charge::LEAST, &thresholds), busy);
    sent.into_iter().for_each(|ticket| account.release(ticket));
    assert_eq!(account.requests(), 0);
}

#[test]
fn requests_that_wait_at_the_server_count_toward_its_blocks() {
    let thresholds = BusyThresholds { active_decode_blocks: Some(0.85), ..BusyThresholds::OFF };
    let mut account = LoadAccount::new(OnSilence::Free);
    account.record_report(0, of_hundred(80, requests(8, 0)), ms(0));
    assert_eq!(account.standing(Charge::LEAST, &thresholds), Standing::Free);
    account.record_report(0, of_hundred(80, requests(8, 1)), ms(250));
    let busy = Standing::Busy(Threshold::ActiveDecodeBlocks);
    assert_eq!(account.standing(Charge::LEAST, &thresholds), busy);
}

#[test]
fn a_block_has_the_size_that_the_upstream_reports() {
    let mut account = LoadAccount::new(OnSilence::Free);
    let guess = Charge::new(64, 1_024);
    assert_eq!(account.estimate(guess), guess, "16 tokens by default");
    let sized = LoadReport { tokens_per_block: Some(128), ..of_hundred(0, requests(0, 0)) };
    account.record_report(0, sized, ms(0));
    assert_eq!(account.estimate(guess), Charge::new(8, 1_024));
}

#[test]
fn a_threshold_on_blocks_needs_a_cache_that_is_reported() {
    let thresholds = BusyThresholds { active_decode_blocks: Some(0.85), ..BusyThresholds::OFF };
    let mut account = LoadAccount::new(OnSilence::Free);
    account.record_report(0, requests(3, 0), ms(0));
    assert_eq!(account.without_data(&thresholds), Some(Threshold::ActiveDecodeBlocks));
    assert_eq!(account.without_data(&BusyThresholds::OFF), None);
    account.record_report(0, of_hundred(0, requests(3, 0)), ms(250));
    assert_eq!(account.without_data(&thresholds), None);
}
