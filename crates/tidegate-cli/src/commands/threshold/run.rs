use super::flags::{Check, Preset, ThresholdCommand, ThresholdValues};
use crate::admin_client::{AdminResponse, call};
use crate::failure::Failure;
use crate::terminal::{aligned, print};
use serde_json::{Map, Value, json};

const PATH: &str = "/busy_threshold";
const FIELDS: [&str; 3] = [
    "active_decode_blocks_threshold",
    "active_prefill_tokens_threshold",
    "active_requests_threshold",
];

/// `tidegate threshold …`.
pub fn run(command: &ThresholdCommand) -> Result<(), Failure> {
    let (answer, json, wanted) = match command {
        ThresholdCommand::Get { model, json, admin } => {
            (call(admin, "GET", PATH, None)?, *json, model.as_deref())
        }
        ThresholdCommand::Set { model, values, json, admin } => {
            let body = change(model, values);
            (call(admin, "POST", PATH, Some(&body))?, *json, None)
        }
        ThresholdCommand::Clear { model, checks, json, admin } => {
            let body = clearing(model, checks);
            (call(admin, "POST", PATH, Some(&body))?, *json, None)
        }
    };
    let response = response_json(&answer)?;
    let rows = rows(&response, wanted)?;
    let text = if json { format!("{response:#}\n") } else { table(&rows) };
    print(&text);
    Ok(())
}

/// Request body: numbers as JSON numbers, other text as strings, which the gateway refuses.
fn change(model: &str, values: &ThresholdValues) -> Value {
    let mut body = Map::from_iter([("model".to_owned(), json!(model))]);
    let preset = match values.preset {
        Some(Preset::Latency) => [json!(0.70), json!(5_000), Value::Null],
        Some(Preset::Throughput) => [json!(0.95), json!(20_000), Value::Null],
        _ => [Value::Null, Value::Null, Value::Null],
    };
    let typed = [
        &values.active_decode_blocks_threshold,
        &values.active_prefill_tokens_threshold,
        &values.active_requests_threshold,
    ];
    for ((field, preset), typed) in FIELDS.into_iter().zip(preset).zip(typed) {
        let value = match typed {
            Some(text) => text.parse().unwrap_or_else(|_| json!(text)),
            None if values.preset.is_some() => preset,
            None => continue,
        };
        body.insert(field.to_owned(), value);
    }
    Value::Object(body)
}

fn clearing(model: &str, checks: &[Check]) -> Value {
    let all = [Check::DecodeBlocks, Check::PrefillTokens, Check::Requests];
    let mut body = Map::from_iter([("model".to_owned(), json!(model))]);
    for (field, check) in FIELDS.into_iter().zip(all) {
        if checks.is_empty() || checks.contains(&check) {
            body.insert(field.to_owned(), Value::Null);
        }
    }
    Value::Object(body)
}

fn response_json(answer: &AdminResponse) -> Result<Value, Failure> {
    let body: Value = serde_json::from_str(&answer.body)
        .map_err(|_| Failure::Runtime(format!("unexpected response: {}", answer.body)))?;
    if answer.status == 200 {
        return Ok(body);
    }
    let message = body["message"].as_str().unwrap_or(&answer.body);
    let message = format!("{message}{}", answer.token_advice());
    Err(match answer.status {
        400 | 422 => Failure::Usage(message),
        _ => Failure::Runtime(message),
    })
}

/// Rows of all models, or of the one that is wanted.
fn rows<'a>(response: &'a Value, wanted: Option<&str>) -> Result<Vec<&'a Value>, Failure> {
    let all: Vec<_> = match &response["thresholds"] {
        Value::Array(rows) => rows.iter().collect(),
        _ => vec![response],
    };
    let Some(wanted) = wanted else { return Ok(all) };
    let found: Vec<_> = all.iter().copied().filter(|row| row["model"] == wanted).collect();
    if found.is_empty() {
        let known: Vec<_> = all.iter().filter_map(|row| row["model"].as_str()).collect();
        let known = known.join(", ");
        return Err(Failure::Runtime(format!("unknown model {wanted:?}; known models: {known}")));
    }
    Ok(found)
}

fn table(rows: &[&Value]) -> String {
    let cell = |value: &Value| match value {
        Value::Null => "off".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let header = ["MODEL", "KV BLOCKS", "PREFILL TOKENS", "REQUESTS"].map(str::to_owned).to_vec();
    let fields = ["model", FIELDS[0], FIELDS[1], FIELDS[2]];
    let mut lines = vec![header];
    lines.extend(rows.iter().map(|row| fields.map(|field| cell(&row[field])).to_vec()));
    aligned(&lines, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(decode: Option<&str>, preset: Option<Preset>) -> ThresholdValues {
        ThresholdValues {
            active_decode_blocks_threshold: decode.map(str::to_owned),
            active_prefill_tokens_threshold: None,
            active_requests_threshold: None,
            preset,
        }
    }

    #[test]
    fn other_thresholds_stay_and_a_preset_sets_all() {
        let body = change("m", &values(Some("0.85"), None));
        assert_eq!(body, json!({ "model": "m", "active_decode_blocks_threshold": 0.85 }));
        let body = change("m", &values(Some("0.5"), Some(Preset::Latency)));
        assert_eq!(body["active_decode_blocks_threshold"], 0.5);
        assert_eq!(body["active_prefill_tokens_threshold"], 5_000);
        assert_eq!(body["active_requests_threshold"], Value::Null);
        let body = change("m", &values(Some("lots"), None));
        assert_eq!(
            body["active_decode_blocks_threshold"], "lots",
            "the gateway says what is wrong"
        );
    }

    #[test]
    fn clearing_names_thresholds_or_all() {
        let body = clearing("m", &[Check::PrefillTokens]);
        assert_eq!(body, json!({ "model": "m", "active_prefill_tokens_threshold": null }));
        assert_eq!(clearing("m", &[]).as_object().map(Map::len), Some(4));
    }

    #[test]
    fn a_table_has_a_row_for_each_model() {
        let response = json!({ "thresholds": [
            { "model": "m", "active_decode_blocks_threshold": 0.85, "active_prefill_tokens_threshold": null },
        ] });
        let text = table(&rows(&response, Some("m")).unwrap());
        assert_eq!(
            text,
            "MODEL  KV BLOCKS  PREFILL TOKENS  REQUESTS\nm      0.85       off             off\n"
        );
        assert!(rows(&response, Some("x")).is_err());
    }
}
