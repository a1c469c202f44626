use http::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;
use tidegate_server::gateway::proxy::deadline_of;

/// The longest that eight digits of hours can say.
const GRPC_MAX: Duration = Duration::from_secs(99_999_999 * 3_600);

/// Reads the time that a client waits, from either header, and from both.
pub fn run(input: &[u8]) -> bool {
    let Ok(value) = HeaderValue::from_bytes(input) else { return false };
    let [ms, grpc, both] =
        [&["tidegate-timeout-ms"][..], &["grpc-timeout"], &["grpc-timeout", "tidegate-timeout-ms"]]
            .map(|names| deadline_of(&headers(names, &value)));
    assert_eq!(both, ms.or(grpc), "milliseconds count before gRPC's");
    if let Some(ms) = ms {
        let written = HeaderValue::from_str(&ms.as_millis().to_string()).expect("digits");
        assert_eq!(deadline_of(&headers(&["tidegate-timeout-ms"], &written)), Some(ms));
    }
    assert!(grpc.is_none_or(|wait| wait <= GRPC_MAX));
    ms.is_some() || grpc.is_some()
}

fn headers(names: &[&'static str], value: &HeaderValue) -> HeaderMap {
    names.iter().map(|name| (HeaderName::from_static(name), value.clone())).collect()
}
