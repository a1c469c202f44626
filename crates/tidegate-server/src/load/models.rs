//! The models that a server answers for, by OpenAI's `GET /v1/models`.

use serde::Deserialize;

/// More models than this at one server are not worth routing by.
pub const MODELS_MAX: usize = 256;

/// Longer than any name of a model, its organisation and revision included.
pub const NAME_BYTES_MAX: usize = 256;

/// An answer that is no list of models.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// It is not the JSON that was agreed on.
    #[error("not a list of models: {0}")]
    Malformed(#[from] serde_json::Error),
    /// It lists more models than are taken.
    #[error("{0} models are more than the {MODELS_MAX} that are taken")]
    TooMany(usize),
    /// It names a model with nothing, or at a length that no name has.
    #[error("a model's name has {0} bytes, not 1 to {NAME_BYTES_MAX}")]
    Name(usize),
}

#[derive(Deserialize)]
struct List {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// The names of the models in an answer to `GET /v1/models`, each once, in the answer's order.
///
/// # Errors
///
/// When it is no such answer, or is beyond what is taken: a server is not routed to by half of a list.
pub fn parse_models(answer: &[u8]) -> Result<Vec<String>, ModelsError> {
    let list: List = serde_json::from_slice(answer)?;
    if list.data.len() > MODELS_MAX {
        return Err(ModelsError::TooMany(list.data.len()));
    }
    let mut names: Vec<String> = Vec::with_capacity(list.data.len());
    for Model { id } in list.data {
        if id.is_empty() || id.len() > NAME_BYTES_MAX {
            return Err(ModelsError::Name(id.len()));
        }
        if !names.contains(&id) {
            names.push(id);
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
        for answer in ["", "ok", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[{"name":"a"}]}"#] {
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
        assert!(matches!(list(&names), Err(ModelsError::TooMany(257))));
        assert_eq!(list(&["x".repeat(NAME_BYTES_MAX)]).unwrap().len(), 1);
        assert!(matches!(list(&["x".repeat(NAME_BYTES_MAX + 1)]), Err(ModelsError::Name(257))));
        assert!(matches!(list(&[String::new()]), Err(ModelsError::Name(0))));
    }
}
