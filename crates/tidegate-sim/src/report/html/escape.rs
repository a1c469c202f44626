use crate::report::format::printable;
use std::fmt;

/// Text from outside as it may stand anywhere in the page, in an attribute too.
pub(super) struct Escaped<T>(pub(super) T);

/// Replaces what means something to HTML on its way through.
struct Escaper<'a, 'b>(&'a mut fmt::Formatter<'b>);

// === impl Escaped ===

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Write::write_fmt(&mut Escaper(f), format_args!("{}", self.0))
    }
}

// === impl Escaper ===

impl fmt::Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| match c {
            '&' => self.0.write_str("&amp;"),
            '<' => self.0.write_str("&lt;"),
            '>' => self.0.write_str("&gt;"),
            '"' => self.0.write_str("&quot;"),
            '\'' => self.0.write_str("&#39;"),
            c => fmt::Write::write_char(self.0, printable(c)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        let odd = "<script>alert(\"1\" & '2')</script>\u{0}\u{1b}\n";
        assert_eq!(
            Escaped(odd).to_string(),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;\u{fffd}\u{fffd} "
        );
        assert_eq!(Escaped(format_args!("{}&", 1)).to_string(), "1&amp;");
    }
}
