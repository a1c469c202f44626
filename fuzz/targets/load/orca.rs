use http::{HeaderMap, HeaderValue};
use tidegate_server::gateway::load::orca;
use tidegate_server::routing::LoadReport;

/// The largest count that a double tells exactly, 2⁵³.
const COUNT_MAX: u64 = 1 << 53;

/// Reads the load in a response's header, and the same load written as text and as JSON.
pub fn run(input: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(input) else { return false };
    let Some(report) = parse(value) else { return false };
    assert!(!report.is_empty());
    let fields = fields(&report);
    assert!(fields.iter().all(|(_, count)| *count <= COUNT_MAX), "{report:?}");
    let text: Vec<_> = fields.iter().map(|(key, count)| format!("{key}={count}")).collect();
    let json: Vec<_> = fields.iter().map(|(key, count)| format!("\"{key}\":{count}")).collect();
    for written in [
        format!("TEXT {}", text.join(", ")),
        text.join(","),
        format!("JSON {{{}}}", json.join(", ")),
        format!("{{\"named_metrics\":{{{}}}}}", json.join(",")),
    ] {
        let value = HeaderValue::from_str(&written).expect("a header of plain text");
        assert_eq!(parse(value), Some(report), "{written}");
    }
    true
}

fn parse(value: HeaderValue) -> Option<LoadReport> {
    orca::parse(&HeaderMap::from_iter([(orca::RESPONSE_HEADER, value)]))
}

fn fields(report: &LoadReport) -> Vec<(&'static str, u64)> {
    assert_eq!(report.tokens_per_block, None, "the header has no such field");
    let fields = [
        ("active_decode_blocks", report.active_decode_blocks),
        ("kv_total_blocks", report.kv_total_blocks),
        ("active_prefill_tokens", report.active_prefill_tokens),
        ("num_requests_running", report.running),
        ("num_requests_waiting", report.waiting),
    ];
    fields.into_iter().filter_map(|(key, count)| Some((key, count?))).collect()
}
