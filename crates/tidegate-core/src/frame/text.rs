use super::NameFault;

/// Checks a name or label. A control character would break logs, metrics and database text.
pub(super) fn check_text(text: &str, bytes_max: usize) -> Result<(), NameFault> {
    if text.len() > bytes_max {
        Err(NameFault::TooLong)
    } else if text.bytes().any(|byte| byte.is_ascii_control()) {
        Err(NameFault::ControlCharacter)
    } else {
        Ok(())
    }
}

/// Longest prefix of a text with at most `bytes_max` bytes, in whole characters.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let table =
            [("", 5, ""), ("abc", 5, "abc"), ("abc", 2, "ab"), ("aä", 2, "a"), ("ä", 0, "")];
        for (text, bytes_max, expected) in table {
            assert_eq!(cut(text, bytes_max), expected, "{text} {bytes_max}");
        }
    }
}
