use crate::mock::engine::RankLoad;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

const REQUEST_HEADER: HeaderName = HeaderName::from_static("endpoint-load-metrics-format");
const RESPONSE_HEADER: HeaderName = HeaderName::from_static("endpoint-load-metrics");

/// Format of load reports in response headers, after ORCA (open request cost aggregation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrcaFormat {
    /// `TEXT named_metrics.a=1.0, named_metrics.b=2.0`
    Text,
    /// `JSON {"named_metrics": {"a": 1.0, "b": 2.0}}`
    Json,
}

// === impl OrcaFormat ===

impl OrcaFormat {
    /// Format that the client requests. Unknown formats are ignored, as in vLLM.
    pub(super) fn requested(headers: &HeaderMap) -> Option<Self> {
        let format = headers.get(REQUEST_HEADER)?.to_str().ok()?.trim();
        match format {
            _ if format.eq_ignore_ascii_case("text") => Some(Self::Text),
            _ if format.eq_ignore_ascii_case("json") => Some(Self::Json),
            _ => None,
        }
    }

    /// Adds the load of a rank to response headers.
    pub(super) fn insert(self, load: &RankLoad, headers: &mut HeaderMap) {
        let metrics = [
            ("kv_cache_usage_perc", load.usage()),
            ("num_requests_running", load.running as f64),
            ("num_requests_waiting", load.waiting as f64),
            ("active_prefill_tokens", load.prefill_tokens as f64),
        ];
        let text = match self {
            Self::Text => {
                let pairs = metrics.map(|(name, value)| format!("named_metrics.{name}={value:?}"));
                format!("TEXT {}", pairs.join(", "))
            }
            Self::Json => {
                let named: Map<String, Value> = metrics
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), json!(value)))
                    .collect();
                format!("JSON {}", json!({ "named_metrics": named }))
            }
        };
        // The text is ASCII.
        headers.extend(HeaderValue::from_str(&text).ok().map(|value| (RESPONSE_HEADER, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_follow_the_specification() {
        let load = RankLoad {
            active_blocks: 2,
            total_blocks: 5,
            running: 1,
            prefill_tokens: 7,
            ..RankLoad::default()
        };
        let report = |format: &'static str| {
            let request =
                HeaderMap::from_iter([(REQUEST_HEADER, HeaderValue::from_static(format))]);
            let mut headers = HeaderMap::new();
            OrcaFormat::requested(&request)?.insert(&load, &mut headers);
            Some(headers[RESPONSE_HEADER].to_str().unwrap().to_owned())
        };
        let text = "TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_running=1.0, \
                    named_metrics.num_requests_waiting=0.0, named_metrics.active_prefill_tokens=7.0";
        assert_eq!(report("text").unwrap(), text);
        let json = report(" JSON").unwrap();
        let json: Value = serde_json::from_str(json.strip_prefix("JSON ").unwrap()).unwrap();
        assert_eq!(json["named_metrics"]["kv_cache_usage_perc"], 0.4);
        assert_eq!(report("BIN"), None);
    }
}
