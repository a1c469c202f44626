/// Replaces control characters and text-direction marks: names and messages come from other parties.
pub fn printable(text: &str) -> String {
    text.chars().map(shown).collect()
}

fn shown(c: char) -> char {
    let turns =
        matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { char::REPLACEMENT_CHARACTER } else { c }
}

/// Table with aligned columns; `right` selects right-aligned ones.
pub fn aligned(lines: &[Vec<String>], right: impl Fn(usize) -> bool) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<_> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let padded = line.iter().zip(&widths).enumerate().map(|(column, (cell, &w))| {
            if right(column) && column + 1 < count {
                format!("{cell:>w$}")
            } else {
                format!("{cell:w$}")
            }
        });
        text.push_str(padded.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a\u{9b}31m\u{202e}b"), "a\u{fffd}31m\u{fffd}b");
    }

    #[test]
    fn columns_are_aligned() {
        let lines =
            [["A", "N", "C"], ["long", "7", ""]].map(|line| line.map(str::to_owned).to_vec());
        assert_eq!(aligned(&lines, |column| column == 1), "A     N  C\nlong  7\n");
    }
}
