//! `cargo run --release -p tidegate-sim --example returns`: retry advice beside the best retry policies.
//!
//! With `all` it prints every case: the best rival, and the ratio, the attempts for each request and the median
//! advice in milliseconds for each server and client.

use tidegate_sim::returns::{AdvisedClient, Advisor, Judged, best_rival, grid, judge_against};

const CLIENTS: [AdvisedClient; 3] =
    [AdvisedClient::Exact, AdvisedClient::Library, AdvisedClient::Seconds];
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() {
    let all = std::env::args().any(|argument| argument == "all");
    let servers = [Advisor::Executor, Advisor::Gateway, Advisor::Admission];
    let rows = servers.into_iter().flat_map(|server| CLIENTS.map(|client| (server, client)));
    let rows: Vec<_> = rows.collect();
    let mut judged: Vec<Vec<Judged>> = vec![Vec::new(); rows.len()];
    for case in grid(&[1, 2, 4, 6, 10, 30, 100], &[1, 3, 10, 30], &[50, 200, 2000]) {
        let rival = best_rival(&case, &SEEDS);
        let seconds = rival.figures.makespan.as_secs_f64();
        let mut line =
            format!("{case} | {:?} {seconds:.2} s {:.1}", rival.policy, rival.figures.attempts);
        for ((server, client), judged) in rows.iter().zip(&mut judged) {
            let one = judge_against(rival, &case, *server, *client, &SEEDS);
            let advice_ms = one.advised.advice_p50.as_millis();
            line += &format!(" | {:.2} {:.1} {advice_ms}", one.ratio(), one.advised.attempts);
            judged.push(one);
        }
        if all {
            println!("{line}");
        }
    }
    println!("| server | client | ratio p50 | p90 | max | above 1.3 | attempts p50 | max |");
    println!("|---|---|---|---|---|---|---|---|");
    for ((server, client), judged) in rows.iter().zip(&judged) {
        let ratios = sorted(judged, Judged::ratio);
        let attempts = sorted(judged, |one| one.advised.attempts);
        let above = ratios.iter().filter(|ratio| **ratio > 1.3).count();
        let of = |values: &[f64], percent: usize| values[(values.len() - 1) * percent / 100];
        println!(
            "| {server:?} | {client:?} | {:.2} | {:.2} | {:.2} | {above} of {} | {:.1} | {:.1} |",
            of(&ratios, 50),
            of(&ratios, 90),
            of(&ratios, 100),
            ratios.len(),
            of(&attempts, 50),
            of(&attempts, 100),
        );
    }
}

fn sorted(judged: &[Judged], of: impl Fn(&Judged) -> f64) -> Vec<f64> {
    let mut values: Vec<_> = judged.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}
