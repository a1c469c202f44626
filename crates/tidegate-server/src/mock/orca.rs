use super::engine::RankLoad;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

const ASKED: HeaderName = HeaderName::from_static("endpoint-load-metrics-format");
const TOLD: HeaderName = HeaderName::from_static("endpoint-load-metrics");

/// How a client wants the load in the headers of answers, after ORCA (open request cost aggregation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrcaFormat {
    /// `TEXT named_metrics.a=1.0, named_metrics.b=2.0`
    Text,
    /// `JSON {"named_metrics": {"a": 1.0, "b": 2.0}}`
    Json,
}

// === impl OrcaFormat ===

impl OrcaFormat {
    /// What was asked for. An unknown format is not answered, as vLLM has it.
    pub(super) fn asked(headers: &HeaderMap) -> Option<Self> {
        let asked = headers.get(ASKED)?.to_str().ok()?.trim();
        match asked {
            _ if asked.eq_ignore_ascii_case("text") => Some(Self::Text),
            _ if asked.eq_ignore_ascii_case("json") => Some(Self::Json),
            _ => None,
        }
    }

    /// Puts the load of a rank into the headers of its answer.
    pub(super) fn tell(self, load: &RankLoad, headers: &mut HeaderMap) {
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
        // All of it is ASCII.
        headers.extend(HeaderValue::from_str(&text).ok().map(|value| (TOLD, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_as_they_are_specified() {
        let load = RankLoad {
            active_blocks: 2,
            total_blocks: 5,
            running: 1,
            prefill_tokens: 7,
            ..RankLoad::default()
        };
        let told = |asked: &'static str| {
            let asked = HeaderMap::from_iter([(ASKED, HeaderValue::from_static(asked))]);
            let mut headers = HeaderMap::new();
            OrcaFormat::asked(&asked)?.tell(&load, &mut headers);
            Some(headers[TOLD].to_str().unwrap().to_owned())
        };
        let text = "TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_running=1.0, \
                    named_metrics.num_requests_waiting=0.0, named_metrics.active_prefill_tokens=7.0";
        assert_eq!(told("text").unwrap(), text);
        let json = told(" JSON").unwrap();
        let json: Value = serde_json::from_str(json.strip_prefix("JSON ").unwrap()).unwrap();
        assert_eq!(json["named_metrics"]["kv_cache_usage_perc"], 0.4);
        assert_eq!(told("BIN"), None);
    }
}
