use super::newline::Lines;
use crate::frame::SenderToken;

/// First word of a line that has a token.
pub(super) const WORD: &[u8] = b"auth ";

/// The token of a block's first line, `auth TOKEN`, and the length of that line with its end.
///
/// A line that is no token by its shape, such as `auth value=1`, is `None`: a record.
#[must_use]
pub fn auth_line(block: &[u8]) -> Option<(SenderToken, usize)> {
    let line = Lines::of(block).next()?;
    let token = line.strip_prefix(WORD)?.trim_ascii();
    Some((std::str::from_utf8(token).ok()?.parse().ok()?, line.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_of_the_first_line() {
        let found = |block: &str| {
            auth_line(block.as_bytes()).map(|(token, length)| (token.expose().to_owned(), length))
        };
        let token = "tg_0123456789abcdef";
        assert_eq!(found("auth tg_0123456789abcdef\nm v=1\n"), Some((token.to_owned(), 25)));
        assert_eq!(found("auth  tg_0123456789abcdef \r\n"), Some((token.to_owned(), 28)));
        for none in ["", "auth", "auth value=1\n", "auth value=1 1700000000000000000\n"] {
            assert_eq!(found(none), None, "{none}");
        }
        assert_eq!(found("m v=1\nauth tg_0123456789abcdef\n"), None);
    }
}
