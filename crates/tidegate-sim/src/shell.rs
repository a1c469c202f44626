//! Quoting of command lines for a shell.

/// A word as a shell takes it: as it is where nothing in it means something to a shell, and in quotes otherwise.
///
/// ```
/// use tidegate_sim::shell::word;
///
/// assert_eq!(word("/tmp/my.toml"), "/tmp/my.toml");
/// assert_eq!(word("batch jobs"), "'batch jobs'");
/// ```
#[must_use]
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=@+".contains(c);
    if !text.is_empty() && !text.starts_with(['-', '=']) && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(word("load_sweep"), "load_sweep");
        assert_eq!(word("http://[::1]:80/a?b&c"), "'http://[::1]:80/a?b&c'");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("$(rm)'x"), r"'$(rm)'\''x'");
        assert_eq!(word("--json"), "'--json'");
        assert_eq!(word(""), "''");
    }
}
