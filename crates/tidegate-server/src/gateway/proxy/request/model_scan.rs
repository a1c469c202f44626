/// Finds the value of the key `model` at the top of a JSON object that comes in pieces, without building anything
/// of the rest and without keeping more than that one value.
#[derive(Debug, Default)]
pub struct ModelScan {
    depth: usize,
    place: Place,
    /// The string that is being read, while it may be the key or the value that is looked for.
    text: Vec<u8>,
    key_matches: bool,
}

/// The result of a scan so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// Not yet.
    More,
    /// This.
    Model(String),
    /// There is none: the object ended without it, or it is no object, or its value is no name.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before the object.
    #[default]
    Start,
    /// In the object, where a key may come.
    BeforeKey,
    /// After a key.
    BeforeColon,
    /// After a colon.
    BeforeValue,
    /// In a value that is of no interest, or behind one.
    InValue,
    /// In a string; where to go on after it.
    InString { kind: Text, escaped: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Key,
    Model,
    Other,
}

/// Names are far shorter; a longer one is none.
const NAME_MAX: usize = 1024;

// === impl ModelScan ===

impl ModelScan {
    /// Has seen nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the next piece. Once it has answered anything but [`Scanned::More`], it is done.
    pub fn feed(&mut self, piece: &[u8]) -> Scanned {
        for byte in piece {
            match self.step(*byte) {
                Scanned::More => {}
                done => return done,
            }
        }
        Scanned::More
    }

    fn step(&mut self, byte: u8) -> Scanned {
        if let Place::InString { kind, escaped } = self.place {
            return self.in_string(byte, kind, escaped);
        }
        match (self.place, byte) {
            // Also the mark that some editors put before UTF-8.
            (_, b' ' | b'\t' | b'\r' | b'\n') | (Place::Start, 0xEF | 0xBB | 0xBF) => {}
            (Place::Start, b'{') => {
                self.depth = 1;
                self.place = Place::BeforeKey;
            }
            (Place::BeforeKey, b'"') => self.begin(Text::Key),
            (Place::BeforeKey, b',') => {}
            (Place::BeforeColon, b':') => self.place = Place::BeforeValue,
            (Place::BeforeValue, b'"') if self.key_matches => self.begin(Text::Model),
            (Place::BeforeValue, _) if self.key_matches => return Scanned::None,
            (Place::BeforeValue | Place::InValue, _) => return self.in_value(byte),
            _ => return Scanned::None,
        }
        Scanned::More
    }

    fn in_value(&mut self, byte: u8) -> Scanned {
        self.place = Place::InValue;
        match byte {
            b'"' => self.begin(Text::Other),
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                if self.depth == 0 {
                    return Scanned::None;
                }
            }
            b',' if self.depth == 1 => self.place = Place::BeforeKey,
            _ => {}
        }
        Scanned::More
    }

    fn begin(&mut self, kind: Text) {
        self.text.clear();
        self.place = Place::InString { kind, escaped: false };
    }

    fn in_string(&mut self, byte: u8, kind: Text, escaped: bool) -> Scanned {
        if byte == b'"' && !escaped {
            return self.end_string(kind);
        }
        self.place = Place::InString { kind, escaped: byte == b'\\' && !escaped };
        if kind != Text::Other {
            if self.text.len() == NAME_MAX {
                // A key this long is another one.
                return if kind == Text::Model { Scanned::None } else { Scanned::More };
            }
            self.text.push(byte);
        }
        Scanned::More
    }

    fn end_string(&mut self, kind: Text) -> Scanned {
        match kind {
            Text::Key => {
                self.key_matches = unescaped(&self.text).as_deref() == Some("model");
                self.place = Place::BeforeColon;
            }
            Text::Model => {
                let name = unescaped(&self.text).filter(|name| !name.is_empty());
                return name.map_or(Scanned::None, Scanned::Model);
            }
            Text::Other => self.place = Place::InValue,
        }
        Scanned::More
    }
}

fn unescaped(text: &[u8]) -> Option<String> {
    if !text.contains(&b'\\') {
        return std::str::from_utf8(text).ok().map(str::to_owned);
    }
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice(&quoted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole, and cut in two at every place: the answer must be the same.
    fn scan(json: &str) -> Scanned {
        let whole = ModelScan::new().feed(json.as_bytes());
        for cut in 0..json.len() {
            let (first, second) = json.as_bytes().split_at(cut);
            let mut scan = ModelScan::new();
            let found = match scan.feed(first) {
                Scanned::More => scan.feed(second),
                found => found,
            };
            assert_eq!(found, whole, "{json} cut at {cut}");
        }
        whole
    }

    fn model(name: &str) -> Scanned {
        Scanned::Model(name.to_owned())
    }

    #[test]
    fn the_model_is_found_wherever_it_stands_at_the_top() {
        assert_eq!(scan(r#"{"model":"m"}"#), model("m"));
        assert_eq!(scan(r#" { "model" : "Qwen/Qwen3-0.6B", "x": 1 }"#), model("Qwen/Qwen3-0.6B"));
        let last = r#"{"messages":[{"role":"user","content":"a \"model\": \"no\" }{["}],"n":1,"model":"m"}"#;
        assert_eq!(scan(last), model("m"));
        assert_eq!(scan(r#"{"a":{"model":"inner"},"model":"outer"}"#), model("outer"));
        assert_eq!(scan(r#"{"mod\u0065l":"\u006d\\"}"#), model("m\\"));
        assert_eq!(scan(r#"{"a":true,"b":null,"c":-1.5e3,"model":"m"}"#), model("m"));
    }

    #[test]
    fn where_there_is_none_that_is_said_at_once_or_at_the_end() {
        for json in
            ["[]", "nonsense", r#"{"a":1}"#, r#"{"model":7}"#, r#"{"model":""}"#, "{}", r#""x""#]
        {
            assert_eq!(scan(json), Scanned::None, "{json}");
        }
        assert_eq!(scan(r#"{"messages":["#), Scanned::More);
        let long = format!(r#"{{"model":"{}"}}"#, "x".repeat(2000));
        assert_eq!(ModelScan::new().feed(long.as_bytes()), Scanned::None);
        let long_key = format!(r#"{{"{}":1,"model":"m"}}"#, "k".repeat(2000));
        assert_eq!(ModelScan::new().feed(long_key.as_bytes()), model("m"));
    }

    #[test]
    fn whatever_comes_there_is_no_panic() {
        let alphabet = br#"{}[]":,\ model1x"#;
        let mut dice = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            let mut scan = ModelScan::new();
            for _ in 0..40 {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let byte = alphabet[(dice % alphabet.len() as u64) as usize];
                if scan.feed(&[byte]) != Scanned::More {
                    break;
                }
            }
        }
    }
}
