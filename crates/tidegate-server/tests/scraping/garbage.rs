//! Pages that were cut, mixed up and filled with noise: whatever comes, nothing panics, nothing grows, and what is
//! not broken is still read.

use crate::support::{page, pages};
use http::{HeaderMap, HeaderValue};
use tidegate_server::gateway::load::{Samples, Scraped, orca, parse_models};

/// Xorshift: the same noise in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Cuts, doubles, swaps or overwrites a piece, preferably with what has a meaning.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        const TELLING: &[u8] = b"{}\"\\,= \n\r#+-.:eE0NaInf\xff\xc3";
        let at = self.below(bytes.len());
        let end = (at + self.below(40)).min(bytes.len());
        match self.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => bytes.extend_from_within(at..end),
            3 => bytes.insert(at, TELLING[self.below(TELLING.len())]),
            _ => bytes[at..end]
                .iter_mut()
                .for_each(|byte| *byte = TELLING[self.below(TELLING.len())]),
        }
    }
}

fn check(page: &str) {
    let scraped = Scraped::parse(page);
    assert!(scraped.ranks.len() <= Scraped::RANKS_MAX);
    assert!(scraped.skipped <= page.lines().count());
    assert!(scraped.ranks.values().all(|report| !report.is_empty()));
    for sample in Samples::new(page) {
        for label in ["engine", "model_name", "le", ""] {
            assert!(sample.label(label).is_none_or(|value| value.len() <= page.len()));
        }
    }
}

#[test]
fn spoiled_pages_are_read_as_far_as_they_can_be() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for (path, page) in pages() {
        for _ in 0..150 {
            let mut bytes = page.clone().into_bytes();
            for _ in 0..=noise.below(12) {
                noise.spoil(&mut bytes);
                bytes.push(b'\n');
            }
            check(&String::from_utf8_lossy(&bytes));
        }
        println!("{}: survived", path.display());
    }
}

#[test]
fn pages_cut_anywhere_are_read_as_far_as_they_go() {
    let page = page("sglang");
    for end in 0..page.len() {
        check(&page[..end]);
    }
}

#[test]
fn noise_is_not_taken_for_anything() {
    let mut noise = Noise(42);
    for _ in 0..300 {
        let length = noise.below(2_000);
        let bytes: Vec<u8> = (0..length).map(|_| noise.next() as u8).collect();
        check(&String::from_utf8_lossy(&bytes));
        let _ = parse_models(&bytes);
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&bytes[..length.min(300)]) {
            headers.insert(orca::RESPONSE_HEADER, value);
            assert_eq!(orca::parse(&headers), None);
        }
    }
}

#[test]
fn spoiled_headers_never_panic() {
    let mut noise = Noise(7);
    for value in [
        "TEXT named_metrics.kv_cache_usage_perc=0.412, named_metrics.num_requests_waiting=3.0",
        r#"JSON {"named_metrics": {"kv_cache_usage_perc": 0.412, "num_requests_waiting": 3.0}}"#,
    ] {
        for _ in 0..5_000 {
            let mut bytes = value.as_bytes().to_vec();
            noise.spoil(&mut bytes);
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { continue };
            let _ = orca::parse(&HeaderMap::from_iter([(orca::RESPONSE_HEADER, value)]));
        }
    }
}

#[test]
fn one_broken_line_costs_one_line() {
    let whole = Scraped::parse(&page("vllm_data_parallel"));
    let spoiled = page("vllm_data_parallel").replacen(
        "# TYPE vllm:kv_cache_usage_perc gauge",
        "vllm:kv_cache_usage_perc{engine=\"0 0.99",
        1,
    );
    let scraped = Scraped::parse(&spoiled);
    assert_eq!((scraped.ranks, scraped.skipped), (whole.ranks, 1));
}
