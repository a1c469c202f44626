//! `tidegate token new` with the real program.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::process::Command;
use tidegate_server::config::{Config, TokenDigest};

fn run(args: &[&str]) -> (bool, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_tidegate")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.success(), text(out.stdout), text(out.stderr))
}

#[test]
fn a_new_token_fits_the_entry_that_is_printed_with_it() {
    let (ok, out, _) = run(&["token", "new", "--client", "web"]);
    assert!(ok);
    let token = out.lines().next().unwrap();
    assert!(token.starts_with("tg_") && token.len() == 3 + 43, "{token}");
    let url_safe = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    assert!(token.bytes().all(url_safe), "{token}");
    let entry = &out[out.find("[[client]]").unwrap()..];
    assert!(!entry.contains(token), "the file has the digest alone");
    let config = Config::from_toml(entry).unwrap();
    assert_eq!(config.claims.clients[0].name, "web");
    assert_eq!(config.claims.clients[0].token, Some(TokenDigest::of(token.as_bytes())));
    let (_, again, _) = run(&["token", "new", "--client", "web"]);
    assert_ne!(again.lines().next(), Some(token), "each is new");
}

#[test]
fn an_operator_has_an_entry_of_its_own_and_names_are_checked() {
    let (ok, out, _) = run(&["token", "new", "--operator", "ops"]);
    assert!(ok);
    let config = Config::from_toml(&out[out.find("[[operator]]").unwrap()..]).unwrap();
    assert_eq!(config.claims.operators[0].name, "ops");
    let (ok, out, err) = run(&["token", "new", "--client", "a b"]);
    assert!(!ok && out.is_empty() && err.contains("1 … 64 letters"), "{out}{err}");
}
