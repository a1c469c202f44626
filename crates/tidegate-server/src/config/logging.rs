/// The levels by name.
pub(super) const LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace", "off"];

/// What a filter looks like, in words.
pub(super) const SHAPE: &str =
    "error, warn, info, debug, trace, off, or directives such as \"info,hyper=warn\"";

/// Whether this selects log events.
///
/// A bare word must be a level. Filters also take a bare target there and then log everything of it, which
/// turns a mistyped level into silence; `target=trace` says the same on purpose.
pub(super) fn is_filter(text: &str) -> bool {
    // Filters by span have commas of their own; whoever builds the subscriber judges them.
    text.contains('[') || text.split(',').all(|directive| is_directive(directive.trim()))
}

fn is_directive(directive: &str) -> bool {
    match directive.split_once('=') {
        Some((target, level)) => is_target(target.trim()) && is_level(level.trim()),
        None => is_level(directive),
    }
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word))
}

fn is_target(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_filters() {
        for text in [
            "info",
            "WARN",
            "off",
            "info,hyper=warn",
            "warn, tidegate::proxy=trace",
            "[span{a=b,c}]=debug",
        ] {
            assert!(is_filter(text), "{text}");
        }
    }

    #[test]
    fn a_mistyped_level_is_not_taken_for_a_target() {
        for text in ["inof", "info,", "hyper", "hyper=loud", "=info", "info hyper=warn"] {
            assert!(!is_filter(text), "{text}");
        }
    }
}
