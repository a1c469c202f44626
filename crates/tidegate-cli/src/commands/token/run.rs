use super::flags::{NewFlags, TokenCommand};
use crate::failure::Failure;
use crate::terminal::print;
use ring::rand::{SecureRandom as _, SystemRandom};
use tidegate_server::config::{Config, TokenDigest};
use tidegate_server::http::admission::TOKEN_PREFIX;

/// Random bytes of a token: 256 bits can't be guessed, nor searched for by their digest.
const TOKEN_BYTES: usize = 32;

/// The digits of base64url (RFC 4648, section 5).
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// `tidegate token new`.
pub fn run(command: &TokenCommand) -> Result<(), Failure> {
    let TokenCommand::New(flags) = command;
    let mut bytes = [0; TOKEN_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::Runtime("the system gives no random bytes".to_owned()))?;
    let token = format!("{TOKEN_PREFIX}{}", base64url(&bytes));
    let entry = entry(flags, &token);
    if let Err(errors) = Config::from_toml(&entry) {
        return Err(Failure::Usage(errors.to_string()));
    }
    print(&format!(
        "{token}\n\nThis token is shown once. Its holder sends it as \"Authorization: Bearer TOKEN\".\n\
         The configuration of the node needs:\n\n{entry}"
    ));
    Ok(())
}

/// The entry of the configuration, which has the digest alone.
fn entry(flags: &NewFlags, token: &str) -> String {
    let (list, name) = match &flags.operator {
        Some(name) => ("operator", name),
        None => ("client", &flags.client),
    };
    let digest = TokenDigest::of(token.as_bytes()).to_hex();
    format!("[[{list}]]\nname = {name:?}\ntoken_sha256 = \"{digest}\"\n")
}

/// Bytes as base64url, without padding.
fn base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        let digit = |place: usize| DIGITS[(group >> (18 - 6 * place)) as usize & 63];
        text.extend((0..=chunk.len()).map(|place| char::from(digit(place))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_the_standard() {
        // RFC 4648, section 10, and the two digits that differ from plain base64.
        for (bytes, text) in [
            (&b"f"[..], "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (&[0xfb, 0xff], "-_8"),
        ] {
            assert_eq!(base64url(bytes), text);
        }
        assert_eq!(base64url(&[7; TOKEN_BYTES]).len(), 43);
    }
}
