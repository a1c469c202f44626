//! Formats of names and numbers in reports.

/// Replaces characters that would move a terminal's cursor or change the direction of the text.
pub(super) fn printable(c: char) -> char {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_whitespace() {
        ' '
    } else if c.is_control() || turns {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

/// A count with its thousands apart: `12,345`.
pub(super) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with about three digits that mean something, and none that don't: `0.05`, `12.3`, `1,234`.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if (1000.0..1e15).contains(&size) {
        let sign = if value < 0.0 { "−" } else { "" };
        return format!("{sign}{}", thousands(size.round() as u64));
    }
    let text = match size {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    text.replace('-', "−")
}

/// A time of this many seconds: `45 s`, `10 min`, `1 min 30 s`.
pub(super) fn time(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor();
    let rest = seconds - minutes * 60.0;
    match (minutes >= 2.0, rest > 0.0) {
        (false, _) => format!("{} s", short(seconds)),
        (true, false) => format!("{} min", short(minutes)),
        (true, true) => format!("{} min {} s", short(minutes), short(rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.05, 0.123, 1.0, 9.996, 12.34, 123.4, 1234.5, 9_876_543.0, -0.5];
        assert_eq!(
            shown.map(short),
            ["0", "0.05", "0.12", "1", "10", "12.3", "123", "1,235", "9,876,543", "−0.5"]
        );
        assert_eq!(
            [1, 12, 123, 1234, 1_234_567].map(thousands).join(" "),
            "1 12 123 1,234 1,234,567"
        );
        assert_eq!(
            [45.0, 90.0, 120.0, 600.0, 150.0].map(time).join(", "),
            "45 s, 90 s, 2 min, 10 min, 2 min 30 s"
        );
    }

    #[test]
    fn what_moves_a_cursor_is_not_shown() {
        let shown: String = "a\u{1b}[2Jb\nc\u{202e}d".chars().map(printable).collect();
        assert_eq!(shown, "a\u{fffd}[2Jb c\u{fffd}d");
    }
}
