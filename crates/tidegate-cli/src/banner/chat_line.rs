/// Shell command that requests a streamed chat completion.
pub fn chat_line(flags: &str, url: &str, model: &str) -> String {
    // JSON escapes the name; within single quotes of the shell only a single quote needs more.
    let model = format!("{model:?}").replace('\'', "'\\''");
    format!(
        "curl -sN{flags} {url}/v1/chat/completions -d '{{\"model\": {model}, \"stream\": true, \
         \"max_tokens\": 20, \"messages\": [{{\"role\": \"user\", \"content\": \"hello\"}}]}}'"
    )
}
