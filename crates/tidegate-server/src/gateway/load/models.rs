//! The models that a server answers for, by OpenAI's `GET /v1/models`.

use serde::Deserialize;

/// More models than this at one server are not worth routing by.
pub const MODELS_MAX: usize = 256;

/// Longer than any name of a model, its organisation and revision included.
pub const NAME_BYTES_MAX: usize = 256;

/// An answer that is no list of models.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The response is no JSON list of models.
    #[error("not a list of models: {0}")]
    Malformed(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct List {
    data: Vec<serde_json::Value>,
}

/// The names of the models in an answer to `GET /v1/models`, each once, in the answer's order. Entries without a
/// name that can be one are passed over, and so are those beyond the first 256.
///
/// # Errors
///
/// When it is no such answer.
pub fn parse_models(answer: &[u8]) -> Result<Vec<String>, ModelsError> {
    let list: List = serde_json::from_slice(answer)?;
    let mut names: Vec<String> = Vec::new();
    for name in list.data.iter().filter_map(|model| model.get("id")?.as_str()) {
        let possible =
            (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control);
        if possible && names.len() < MODELS_MAX && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_once_and_in_order_whatever_else_is_said_of_them() {
        let answer = br#"{"object":"list","data":[
            {"id":"Qwen/Qwen3-0.6B","object":"model","owned_by":"vllm","permission":[{}]},
            {"id":"lora-a","parent":"Qwen/Qwen3-0.6B"},
            {"id":"Qwen/Qwen3-0.6B"}]}"#;
        assert_eq!(parse_models(answer).unwrap(), ["Qwen/Qwen3-0.6B", "lora-a"]);
        assert!(parse_models(br#"{"data":[]}"#).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_list_of_models_is_an_error() {
        for answer in ["", "ok", "[]", "{}", r#"{"data":{}}"#] {
            let error = parse_models(answer.as_bytes()).unwrap_err();
            assert!(matches!(error, ModelsError::Malformed(_)), "{answer}: {error}");
        }
    }

    #[test]
    fn there_is_a_most_of_names_and_of_their_length() {
        let list = |names: &[String]| {
            let models: Vec<_> = names.iter().map(|id| serde_json::json!({ "id": id })).collect();
            parse_models(serde_json::json!({ "data": models }).to_string().as_bytes())
        };
        let names: Vec<_> = (0..=MODELS_MAX).map(|n| format!("model-{n}")).collect();
        assert_eq!(list(&names[1..]).unwrap().len(), MODELS_MAX);
        assert_eq!(list(&names).unwrap().len(), MODELS_MAX);
        assert_eq!(list(&["x".repeat(NAME_BYTES_MAX)]).unwrap().len(), 1);
        let odd =
            ["x".repeat(NAME_BYTES_MAX + 1), String::new(), "a\0b".to_owned(), "good".to_owned()];
        assert_eq!(list(&odd).unwrap(), ["good"], "one odd name does not spoil the others");
        assert_eq!(parse_models(br#"{"data":[{"id":7},{"id":"m"},5]}"#).unwrap(), ["m"]);
    }
}
