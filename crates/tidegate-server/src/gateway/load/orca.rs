//! Load in the headers of answers: ORCA, the Open Request Cost Aggregation.
//!
//! vLLM sends it with answers that are not streamed, and with several engines it tells of one of them; Triton
//! sends it for its TensorRT-LLM backend. Both only when they are asked to ([`REQUEST_FORMAT`]), and both
//! render all their metrics to do so: a scrape an interval costs them less.

use super::kv::{self, Kv};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tidegate::routing::LoadReport;

/// The header of a request that asks for load in the answer, and its value. In small letters because Triton
/// knows no others; vLLM takes both.
pub const REQUEST_FORMAT: (HeaderName, HeaderValue) =
    (HeaderName::from_static("endpoint-load-metrics-format"), HeaderValue::from_static("text"));

/// The header of an answer that tells load.
pub const RESPONSE_HEADER: HeaderName = HeaderName::from_static("endpoint-load-metrics");

/// Longer than any report by far; what is beyond is not looked at.
const BYTES_MAX: usize = 4_096;

/// The meaning of a key.
#[derive(Clone, Copy)]
enum Meaning {
    KvRatio,
    /// Of what the application says is its bottleneck; it stands in where nothing is told of the cache.
    Utilization,
    KvUsed,
    KvTotal,
    /// Its unit differs from the blocks' of a scrape, so that only whether there are any is taken from it.
    KvTokens,
    PrefillTokens,
    Running,
    Waiting,
}

/// Keys by which servers tell, without case, `_` and `-`, in which they differ.
const KEYS: &[(&str, Meaning)] = &[
    ("kvcacheusageperc", Meaning::KvRatio),     // vLLM
    ("kvcacheutilization", Meaning::KvRatio),   // Triton
    ("gpucacheusageperc", Meaning::KvRatio),    // vLLM before 0.10
    ("tokenusage", Meaning::KvRatio),           // SGLang's own name
    ("numrequestswaiting", Meaning::Waiting),   // vLLM
    ("numrequestsrunning", Meaning::Running),   // vLLM
    ("numqueuereqs", Meaning::Waiting),         // SGLang's own name
    ("numrunningreqs", Meaning::Running),       // SGLang's own name
    ("totalqueuedrequests", Meaning::Waiting),  // the model server protocol of the Gateway API
    ("totalrunningrequests", Meaning::Running), // the same
    ("queuedepth", Meaning::Waiting),
    ("maxtokencapacity", Meaning::KvTokens), // Triton
    ("applicationutilization", Meaning::Utilization), // the report's own field
    ("activedecodeblocks", Meaning::KvUsed),
    ("kvtotalblocks", Meaning::KvTotal),
    ("activeprefilltokens", Meaning::PrefillTokens),
];

/// The numbers parsed so far.
#[derive(Default)]
struct Told {
    kv: Kv,
    utilization: Option<f64>,
    report: LoadReport,
}

/// The load that an answer's headers tell. `None` when they tell none, or nothing that is understood.
///
/// Three forms are read: `TEXT key=value, …`, the same without the word, and `JSON {…}`; the binary one is not. A
/// ratio becomes blocks of a thousand, as in a scrape.
#[must_use]
pub fn parse(headers: &HeaderMap) -> Option<LoadReport> {
    let text = headers.get(&RESPONSE_HEADER)?.to_str().ok()?.trim();
    if text.len() > BYTES_MAX {
        return None;
    }
    let mut told = Told::default();
    match text.split_once(' ') {
        Some((form, rest)) if form.eq_ignore_ascii_case("TEXT") => told.read_text(rest),
        Some((form, rest)) if form.eq_ignore_ascii_case("JSON") => told.read_json(rest)?,
        _ if text.starts_with('{') => told.read_json(text)?,
        _ => told.read_text(text),
    }
    told.report()
}

// === impl Told ===

impl Told {
    fn read_text(&mut self, text: &str) {
        for pair in text.split(',') {
            // Some write a colon.
            let Some((key, value)) = pair.split_once(['=', ':']) else { continue };
            let key = key.trim();
            let key = match key.split_once('.') {
                Some((map, key)) if is_same(map, "namedmetrics") || is_same(map, "utilization") => {
                    key
                }
                // Costs of the one request are no load.
                Some(_) => continue,
                None => key,
            };
            if let Ok(value) = value.trim_matches([' ', '\t', '"']).parse() {
                self.note(key, value);
            }
        }
    }

    fn read_json(&mut self, text: &str) -> Option<()> {
        let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
        for (key, value) in &fields {
            match value {
                Value::Object(named)
                    if is_same(key, "namedmetrics") || is_same(key, "utilization") =>
                {
                    named.iter().for_each(|(key, value)| self.note_json(key, value));
                }
                value => self.note_json(key, value),
            }
        }
        Some(())
    }

    fn note_json(&mut self, key: &str, value: &Value) {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if let Some(number) = number {
            self.note(key, number);
        }
    }

    fn note(&mut self, key: &str, value: f64) {
        let Some((_, meaning)) = KEYS.iter().find(|(known, _)| is_same(key, known)) else { return };
        let count = kv::count(value);
        match meaning {
            Meaning::KvRatio => self.kv.ratio = kv::ratio(value).or(self.kv.ratio),
            Meaning::Utilization => self.utilization = kv::ratio(value),
            Meaning::KvUsed => self.kv.used = count,
            Meaning::KvTotal => self.kv.total = count,
            Meaning::KvTokens if count == Some(0) => self.kv.total = count,
            Meaning::KvTokens => {}
            Meaning::PrefillTokens => self.report.active_prefill_tokens = count,
            Meaning::Running => self.report.running = count,
            Meaning::Waiting => self.report.waiting = count,
        }
    }

    fn report(mut self) -> Option<LoadReport> {
        if self.kv == Kv::default() {
            self.kv.ratio = self.utilization;
        }
        self.kv.fill(&mut self.report);
        (!self.report.is_empty()).then_some(self.report)
    }
}

/// Returns true if a key is this one, which is given without separators and in small letters.
fn is_same(key: &str, known: &str) -> bool {
    let letters = key.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
    letters.map(|byte| byte.to_ascii_lowercase()).eq(known.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: &str) -> Option<LoadReport> {
        let mut headers = HeaderMap::new();
        headers.insert(RESPONSE_HEADER, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        parse(&headers)
    }

    fn report(kv: Option<(u64, u64)>, running: Option<u64>, waiting: Option<u64>) -> LoadReport {
        LoadReport {
            active_decode_blocks: kv.map(|(active, _)| active),
            kv_total_blocks: kv.map(|(_, total)| total),
            running,
            waiting,
            ..LoadReport::default()
        }
    }

    #[test]
    fn what_servers_send_is_read() {
        let vllm = report(Some((412, 1_000)), None, Some(3));
        for value in [
            "TEXT named_metrics.kv_cache_usage_perc=0.412, named_metrics.num_requests_waiting=3.0",
            "text named_metrics.kv_cache_usage_perc=0.412,named_metrics.num_requests_waiting=3",
            "named_metrics.kv_cache_usage_perc=0.412,named_metrics.num_requests_waiting=3",
            "named_metrics.kv_cache_usage_perc:0.412 , named_metrics.num_requests_waiting : \"3\"",
            r#"JSON {"named_metrics": {"kv_cache_usage_perc": 0.412, "num_requests_waiting": 3}}"#,
            r#"{"namedMetrics":{"kvCacheUsagePerc":"0.412","numRequestsWaiting":"3"}}"#,
        ] {
            assert_eq!(told(value), Some(vllm), "{value}");
        }
        let triton = "TEXT named_metrics.kv_cache_utilization=0.250000, \
                      named_metrics.max_token_capacity=399296";
        assert_eq!(told(triton), Some(report(Some((250, 1_000)), None, None)));
    }

    #[test]
    fn a_capacity_of_nothing_says_that_it_is_not_ready() {
        let value = "TEXT named_metrics.kv_cache_utilization=0, named_metrics.max_token_capacity=0";
        assert_eq!(told(value), Some(report(Some((0, 0)), None, None)));
    }

    #[test]
    fn the_application_s_own_utilization_stands_in_for_the_cache_s() {
        let value = "TEXT cpu_utilization=0.9, application_utilization=0.7";
        assert_eq!(told(value), Some(report(Some((700, 1_000)), None, None)));
        let both = "TEXT application_utilization=0.7,named_metrics.kv_cache_usage_perc=0.2";
        assert_eq!(told(both), Some(report(Some((200, 1_000)), None, None)));
        // Seen in the wild: a number of requests under the name of a ratio.
        assert_eq!(
            told("application_utilization:6,named_metrics.queue_depth:6"),
            Some(report(None, None, Some(6)))
        );
    }

    #[test]
    fn blocks_and_prefill_are_read_as_our_agents_tell_them() {
        let value = "TEXT named_metrics.active_decode_blocks=7,named_metrics.kv_total_blocks=9,\
                     active_prefill_tokens=12000,named_metrics.num_requests_running=2";
        let mut expected = report(Some((7, 9)), Some(2), None);
        expected.active_prefill_tokens = Some(12_000);
        assert_eq!(told(value), Some(expected));
    }

    #[test]
    fn garbage_tells_nothing() {
        let long = format!("TEXT {}named_metrics.num_requests_waiting=3", "x=1,".repeat(1_100));
        for value in [
            "",
            "TEXT ",
            "TEXT",
            "JSON ",
            "JSON {",
            "JSON []",
            "JSON null",
            "JSON \"named_metrics\": {\"kv_cache_usage_perc\": 0.4}",
            r#"JSON {"named_metrics": {}}"#,
            r#"JSON {"named_metrics": {"kv_cache_usage_perc": [0.4]}}"#,
            "BIN CZqZmZmZmbk/MQAAAAAAAABAQg0KA2ZvbxHNzMzMzMzcPw==",
            "TEXT named_metrics.kv_cache_usage_perc=NaN",
            "TEXT named_metrics.kv_cache_usage_perc=-0.1, named_metrics.num_requests_waiting=-1",
            "TEXT named_metrics.kv_cache_usage_perc=41.2",
            "TEXT request_cost.kv_cache_usage_perc=0.4",
            "TEXT rps_fractional=1000, eps=0",
            "=,=,:,.=1",
            long.as_str(),
        ] {
            assert_eq!(told(value), None, "{value}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(parse(&headers), None);
        headers.insert(RESPONSE_HEADER, HeaderValue::from_bytes(b"TEXT \xff=1").unwrap());
        assert_eq!(parse(&headers), None);
    }
}
