//! Noise in every layer never panics, and every error has one line.

use crate::support::names;
use proptest::prelude::*;
use tidegate_server::config::Loader;

const NEARLY_RIGHT: &str = r#"
role = "worker"
listen.address = "0.0.0.0:80"
[admission]
global_limit = 100
warn_threshold = 1
[[upstream]]
url = "https://[::1]"
[[client]]
name = "batch"
token = "0123456789abcdef"
[[route]]
method = "POST"
header = "X-Kind"
priority = "low"
"#;

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "[", "]", "[[", "]]", "=", " ", "\n", "\"", "'''", ".", ",", "{", "}", "#", "-", "_", "0x", "é",
    "\u{0}", "\u{202e}", "\r\n", "role", "listen", "admission", "client", "route", "upstream", "url",
    "token", "token_env", "high_limit", "address", "name", "header", "true", "nan", "1e999", "-1",
    "99999999999999999999999999999999999999999999", "1979-05-27", "http://", "[::1]", "@", ":", "/",
    "127.0.0.1:8000", "critical", "low", "PENDING_RESPONSE_LOW_LIMIT", "TIDEGATE_", "TIDEGATE_ROLE",
];

fn noise(pieces_max: usize) -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..pieces_max);
    pieces.prop_map(|pieces| pieces.concat())
}

/// A file that is nearly right gets further than noise.
fn spoiled() -> impl Strategy<Value = String> {
    let insertions = prop::collection::vec((0..NEARLY_RIGHT.len(), noise(3)), 1..=6);
    insertions.prop_map(|insertions| {
        insertions.iter().fold(NEARLY_RIGHT.to_owned(), |mut text, (at, noise)| {
            let at = (0..=*at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.insert_str(at, noise);
            text
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn noise_never_panics(
        text in prop_oneof![spoiled(), noise(40)],
        known in prop::collection::vec((prop::sample::select(names()), noise(3)), 0..4),
        unknown in prop::collection::vec((noise(4), noise(3)), 0..4),
        flags in prop::collection::vec((noise(3), noise(3)), 0..4),
        upstreams in prop::collection::vec(noise(5), 0..4),
    ) {
        let unknown = unknown.into_iter().map(|(name, value)| (format!("TIDEGATE_{name}"), value));
        let mut loader = Loader::new().file("f", text).env(known).env(unknown);
        for (key, value) in flags {
            loader = loader.flag("--set", key, value);
        }
        for url in upstreams {
            loader = loader.flag("--upstream", "upstream", url);
        }
        if let Err(errors) = loader.load() {
            prop_assert_eq!(errors.to_string().lines().count(), errors.len() + 1, "{}", errors);
        }
    }
}
