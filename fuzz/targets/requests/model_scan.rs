use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use tidegate_server::gateway::proxy::{ModelScan, Scanned};

/// The longest name in bytes as written that the scan takes.
const NAME_BYTES_MAX: usize = 1024;

/// Finds the model of a body, whole and in pieces, and the same as a JSON parser where the body is JSON.
pub fn run(input: &[u8]) -> bool {
    let whole = scan(input, input.len().max(1));
    for piece_bytes in [1, 2 + input.len() % 61] {
        assert_eq!(scan(input, piece_bytes), whole, "in pieces of {piece_bytes} bytes");
    }
    if let Scanned::Model(name) = &whole {
        assert!((1..=NAME_BYTES_MAX).contains(&name.len()));
    }
    // Some editors write a mark before UTF-8, which JSON does not have.
    let json = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let found = serde_json::Deserializer::from_slice(json).deserialize_map(FirstModel);
    if let (Ok(first), true) = (found, input.len() <= NAME_BYTES_MAX) {
        let expected = match first {
            Some(Value::String(name)) if !name.is_empty() => Scanned::Model(name),
            _ => Scanned::None,
        };
        assert_eq!(whole, expected);
    }
    matches!(whole, Scanned::Model(_))
}

fn scan(input: &[u8], piece_bytes: usize) -> Scanned {
    let mut scan = ModelScan::new();
    let mut pieces = input.chunks(piece_bytes).map(|piece| scan.feed(piece));
    pieces.find(|scanned| *scanned != Scanned::More).unwrap_or(Scanned::More)
}

/// The first value of the key `model` in an object.
struct FirstModel;

// === impl FirstModel ===

impl<'de> Visitor<'de> for FirstModel {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut first = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "model" && first.is_none() {
                first = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(first)
    }
}
