use super::flags::UpstreamsFlags;
use crate::admin_client::call;
use crate::failure::Failure;
use crate::terminal::{aligned, print};
use serde_json::{Value, json};

/// `tidegate upstreams`.
pub fn run(flags: &UpstreamsFlags) -> Result<(), Failure> {
    let answer = call(&flags.admin, "GET", "/v1/stats", None)?;
    let unexpected = || {
        let advice = answer.token_advice();
        Failure::Runtime(format!("unexpected response: {}{advice}", answer.body.trim_end()))
    };
    if answer.status != 200 {
        return Err(unexpected());
    }
    let stats: Value = serde_json::from_str(&answer.body).map_err(|_| unexpected())?;
    let text = match flags.json {
        true => {
            let both = json!({ "upstreams": stats["upstreams"], "models": stats["models"] });
            format!("{both:#}\n")
        }
        false => format!("{}{}\n{}", upstreams(&stats), warnings(&stats), queues(&stats)),
    };
    print(&text);
    Ok(())
}

fn upstreams(stats: &Value) -> String {
    let header = ["UPSTREAM", "STATE", "IN FLIGHT", "LIMIT", "MOVED", "SENT", "FAILED"];
    let mut lines = vec![header.map(str::to_owned).to_vec()];
    for upstream in array(&stats["upstreams"]) {
        let load = &upstream["load"];
        let found = &load["found_limit"];
        let state = match (upstream["up"].as_bool(), found["breaker_open"].as_bool()) {
            (Some(true), Some(true)) => "no response",
            (Some(true), _) => "up",
            _ => "down",
        };
        let moved = match (&load["limit"], found["last_move"].as_str()) {
            (_, Some(cause)) => cause.replace('_', " "),
            (Value::Null, None) => "-".to_owned(),
            (_, None) => "configured".to_owned(),
        };
        let limit = match &load["limit"] {
            Value::Null => "off".to_owned(),
            limit => limit.to_string(),
        };
        lines.push(vec![
            text(&upstream["name"]),
            state.to_owned(),
            text(&upstream["in_flight"]),
            limit,
            moved,
            text(&upstream["sent"]),
            text(&upstream["failed"]),
        ]);
    }
    aligned(&lines, |column| matches!(column, 2 | 3 | 5 | 6))
}

/// A line for each threshold that is set and can't be checked at an upstream.
fn warnings(stats: &Value) -> String {
    let mut lines = String::new();
    for upstream in array(&stats["upstreams"]) {
        for threshold in array(&upstream["load"]["thresholds_without_data"]) {
            let (name, threshold) = (text(&upstream["name"]), text(threshold));
            lines += &format!(
                "warning: {name} does not report its KV cache: {threshold} is not checked there\n"
            );
        }
    }
    lines
}

fn queues(stats: &Value) -> String {
    let header = ["MODEL", "WAITING", "STATE", "SERVICE", "QUEUED", "SERVED", "REFUSED"];
    let mut lines = vec![header.map(str::to_owned).to_vec()];
    for model in array(&stats["models"]) {
        let queue = &model["queue"];
        let count = |field: &str| queue[field].as_u64().unwrap_or_default();
        let waiting = ["high", "normal", "low"].map(|band| format!("{band} {}", count(band)));
        let service = match queue["service_us"].as_f64() {
            Some(us) => format!("{:.1} ms", us / 1e3),
            None => "-".to_owned(),
        };
        let refused = count("refused_full") + count("refused_wait");
        lines.push(vec![
            text(&model["model"]),
            waiting.join(", "),
            text(&queue["state"]).to_lowercase(),
            service,
            count("queued").to_string(),
            count("served").to_string(),
            refused.to_string(),
        ]);
    }
    aligned(&lines, |column| column >= 3)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_queues_and_an_upstream_that_does_not_respond_are_shown() {
        let found = json!({ "last_move": "breaker_open", "breaker_open": true });
        let stats = json!({
            "upstreams": [
                { "name": "a:1", "up": true, "in_flight": 3, "sent": 70, "failed": 0,
                  "load": { "limit": 8, "found_limit": null,
                            "thresholds_without_data": ["active_decode_blocks"] } },
                { "name": "b:1", "up": true, "in_flight": 0, "sent": 9, "failed": 9,
                  "load": { "limit": 0, "found_limit": found } },
                { "name": "c:1", "up": false, "in_flight": 0, "sent": 0, "failed": 1,
                  "load": { "limit": null, "found_limit": null } },
            ],
            "models": [{ "model": "*", "queue": {
                "high": 1, "normal": 2, "low": 0, "state": "HEALTHY", "service_us": 51_250,
                "queued": 10, "served": 7, "refused_full": 1, "refused_wait": 4 } }],
        });
        let lines: Vec<_> = upstreams(&stats)
            .lines()
            .map(|line| line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect())
            .map(|parts: Vec<_>| parts.join("|"))
            .collect();
        assert_eq!(lines[1], "a:1|up|3|8|configured|70|0");
        assert_eq!(lines[2], "b:1|no response|0|0|breaker open|9|9");
        assert_eq!(lines[3], "c:1|down|0|off|-|0|1");
        let warning = "warning: a:1 does not report its KV cache: active_decode_blocks is not checked there\n";
        assert_eq!(warnings(&stats), warning);
        let queues = queues(&stats);
        for part in ["high 1, normal 2, low 0", "healthy", "51.2 ms", "10", "7", "5"] {
            assert!(queues.contains(part), "{part}: {queues}");
        }
    }
}
