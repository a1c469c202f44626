use tidegate::admission::{MessagePriority, Urgency};

/// Reads the urgency of RFC 9218: never Critical, the last valid one, and deaf to members that are not `u`.
pub fn run(input: &[u8]) -> bool {
    let header = String::from_utf8_lossy(input);
    let urgency = Urgency::parse(&header);
    let [last, first] = ["u=7", "u=0"].map(Urgency::parse);
    assert!(urgency.is_none_or(|urgency| urgency.priority() != MessagePriority::Critical));
    assert_eq!(Urgency::parse(&format!("u=0, {header}")), urgency.or(first));
    assert_eq!(Urgency::parse(&format!("i, a=\"u=1,\\\"\",{header}")), urgency);
    // Within a string that has no end, nothing more is read.
    let appended = Urgency::parse(&format!("{header},u=7"));
    assert!(appended == last || (appended == urgency && header.contains('"')), "{header:?}");
    urgency.is_some()
}
