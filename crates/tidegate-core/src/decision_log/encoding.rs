/// Appends a value as one line of JSON.
pub(super) fn encode(value: &impl serde::Serialize, lines: &mut Vec<u8>) {
    let begin = lines.len();
    match serde_json::to_writer(&mut *lines, value) {
        Ok(()) => lines.push(b'\n'),
        // Only a map with odd keys or a failing writer can fail, and here is neither.
        Err(_) => lines.truncate(begin),
    }
}
