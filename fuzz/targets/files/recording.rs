use tidegate::decision_log::{Header, Line};
use tidegate_sim::replay::{Reader, Recording, Setting, compare};

/// Reads a recording, whole and line by line, writes its lines again, and replays it with other limits.
pub fn run(input: &[u8]) -> bool {
    input.split(|byte| *byte == b'\n').for_each(round_trip);
    let by_line = by_line(input);
    if let Ok(text) = str::from_utf8(input) {
        let whole = Recording::read(text).ok();
        assert_eq!(whole, by_line, "whole or line by line");
    }
    let Some(recording) = by_line else { return false };
    assert!(recording.arrivals.is_sorted_by_key(|arrival| arrival.at_us));
    let settings = [Setting::Global(1), Setting::Low(1)];
    let comparison = compare(&recording, &settings, 1);
    // Requests that came before the recording are not judged.
    let counted = recording.arrivals.iter().filter(|arrival| arrival.at_us >= 0).count();
    assert_eq!(comparison.requests, counted as u64);
    assert!((0.0..=1.0).contains(&comparison.same.same_decision), "{comparison:?}");
    assert_eq!(compare(&recording, &settings, 1), comparison, "the same seed gives the same");
    true
}

fn by_line(input: &[u8]) -> Option<Recording> {
    let mut reader = Reader::default();
    let mut lines = input.split(|byte| *byte == b'\n');
    let rest = lines.next_back().unwrap_or_default();
    for line in lines {
        reader.line(line).ok()?;
    }
    reader.rest(rest).ok()?;
    reader.finish().ok()
}

fn round_trip(line: &[u8]) {
    let mut written = Vec::new();
    if let Ok(header) = Header::decode(line) {
        header.encode(&mut written);
        assert_eq!(Header::decode(&written).ok(), Some(header));
    } else if let Ok(decoded) = Line::decode(line) {
        decoded.encode(&mut written);
        assert_eq!(Line::is_decision(&written), matches!(decoded, Line::Decision(_)));
        assert_eq!(Line::decode(&written).ok(), Some(decoded));
    }
}
