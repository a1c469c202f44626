use crate::tasks::execution::{ExecutionState, ExecutionView, floor_char};
use crate::tasks::session::ExecutionUpdate;
use tidegate::task::OutputChunk;

/// Splits an update into ones with at most `bytes_max` of output each, in order. Only the last one has the end: an
/// execution must not end before its output has arrived.
pub(super) fn pages(after: u64, view: ExecutionView, bytes_max: usize) -> Vec<ExecutionUpdate> {
    let bytes: usize = view.output.iter().map(|chunk| chunk.text.len()).sum();
    if bytes <= bytes_max {
        return vec![ExecutionUpdate { after, view }];
    }
    let (mut pages, mut offset) = (Vec::new(), after);
    let mut rest = view.clone();
    let mut output: Vec<OutputChunk> = std::mem::take(&mut rest.output);
    output.reverse();
    while !output.is_empty() {
        let (chunks, bytes) = take(&mut output, bytes_max);
        let from = offset;
        offset += bytes as u64;
        let page = match output.is_empty() {
            true => ExecutionView { output: chunks, ..rest.clone() },
            false => ExecutionView { output: chunks, next: offset, ..unended(&rest) },
        };
        pages.push(ExecutionUpdate { after: from, view: page });
    }
    pages
}

/// Takes chunks of up to `bytes_max` from the end of the list, of which each is split where it has to be.
fn take(output: &mut Vec<OutputChunk>, bytes_max: usize) -> (Vec<OutputChunk>, usize) {
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    while let Some(mut chunk) = output.pop() {
        let room = bytes_max - bytes;
        if chunk.text.len() > room {
            // At least one character, so that every page makes progress.
            let fits = floor_char(&chunk.text, room);
            let first = chunk.text.chars().next().map_or(0, char::len_utf8);
            let cut = if chunks.is_empty() { fits.max(first) } else { fits };
            let tail = chunk.text.split_off(cut);
            output.push(OutputChunk { stream: chunk.stream, text: tail });
            if cut > 0 {
                bytes += cut;
                chunks.push(chunk);
            }
            break;
        }
        bytes += chunk.text.len();
        chunks.push(chunk);
    }
    (chunks, bytes)
}

/// The same execution, as it was before its end.
fn unended(view: &ExecutionView) -> ExecutionView {
    let state = match view.state {
        ExecutionState::Starting => ExecutionState::Starting,
        _ => ExecutionState::Running,
    };
    ExecutionView {
        state,
        reason: None,
        exit_code: None,
        message: String::new(),
        stopped: Vec::new(),
        output_cut: false,
        ..view.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::task::OutputStream;

    fn view(texts: &[&str]) -> ExecutionView {
        let chunk =
            |text: &&str| OutputChunk { stream: OutputStream::Stdout, text: (*text).to_owned() };
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        let json = serde_json::json!({
            "id": "a@1", "eval_id": "a", "attempt": 1, "state": "succeeded", "exit_code": 0,
            "next": 100 + bytes,
        });
        let mut view: ExecutionView = serde_json::from_value(json).unwrap();
        view.output = texts.iter().map(chunk).collect();
        view
    }

    #[test]
    fn pages_join_to_the_output_and_only_the_last_has_the_end() {
        for bytes_max in [1, 2, 3, 5, 8] {
            let updates = pages(100, view(&["abc", "déf", "ghij"]), bytes_max);
            let mut offset = 100;
            let mut text = String::new();
            for (at, update) in updates.iter().enumerate() {
                assert_eq!(update.after, offset);
                let bytes: usize = update.view.output.iter().map(|chunk| chunk.text.len()).sum();
                assert!(bytes <= bytes_max.max(2), "{bytes} of {bytes_max}");
                offset += bytes as u64;
                assert_eq!(update.view.next, offset);
                text.extend(update.view.output.iter().map(|chunk| chunk.text.as_str()));
                let is_last = at + 1 == updates.len();
                assert_eq!(update.view.ending().is_some(), is_last);
            }
            assert_eq!(text, "abcdéfghij");
        }
        assert_eq!(pages(100, view(&["abc"]), 3).len(), 1);
        assert_eq!(pages(100, view(&[]), 3).len(), 1, "an end without output");
    }
}
