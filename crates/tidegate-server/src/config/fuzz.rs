//! Noise in every layer. Whatever is given, there is an answer and no panic.

use super::{Loader, SETTINGS};

/// A generator of its own, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn garbage(&mut self, pieces_max: usize) -> String {
        (0..self.roll(pieces_max)).map(|_| PIECES[self.roll(PIECES.len())]).collect()
    }

    /// The text with some garbage in it.
    fn spoil(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..=self.roll(6) {
            let mut at = self.roll(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            text.insert_str(at, &self.garbage(3));
        }
        text
    }
}

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

#[test]
fn garbage_never_panics() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..3_000 {
        // A file that is nearly right gets further than noise.
        let text = if round % 2 == 0 { dice.spoil(NEARLY_RIGHT) } else { dice.garbage(40) };
        let mut loader = Loader::new().file("f", text);
        for _ in 0..dice.roll(4) {
            let name = SETTINGS[dice.roll(SETTINGS.len())].env_name();
            let noise = format!("TIDEGATE_{}", dice.garbage(4));
            loader = loader
                .env([(name, dice.garbage(3)), (noise, dice.garbage(3))])
                .flag(dice.garbage(3), dice.garbage(3))
                .flag("upstream", dice.garbage(5));
        }
        if let Err(mistakes) = loader.load() {
            assert_eq!(mistakes.to_string().lines().count(), mistakes.len() + 1, "{mistakes}");
        }
    }
}
