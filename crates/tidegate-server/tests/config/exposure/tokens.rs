use super::{IDENTITIES, PORTS, all_open};
use crate::support::{about, errors, only};
use tidegate_server::config::Config;

/// One certificate for all ports.
const TLS: &str = "tls.cert = \"cert.pem\"\ntls.key = \"key.pem\"\n";

#[test]
fn an_open_data_port_needs_a_token_and_decisions() {
    let decided = "proxy.forwarded = \"replace\"\nclaims.anonymous = \"low\"";
    let error = only(&format!("listen.address = \"0.0.0.0:8000\"\n{TLS}{decided}"));
    assert!(error.allowed.contains("add a [[client]] with a token, or listen on 127.0.0.1"));
    let client = "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"";
    let open = format!("{TLS}listen.address = \"[::]:80\"");
    assert!(Config::from_toml(&format!("{open}\n{decided}\n{client}")).is_ok());
    let undecided = errors(&format!("{open}\n{client}")).to_string();
    assert!(undecided.contains("claims.anonymous (default): given nothing"), "{undecided}");
    assert!(undecided.contains("proxy.forwarded (default): given nothing"), "{undecided}");
    let nobody = only("claims.anonymous = \"refuse\"");
    assert!(nobody.allowed.contains("nobody could get in"), "{nobody}");
    for loopback in ["127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(Config::from_toml(&format!("listen.address = \"{loopback}\"")).is_ok());
    }
    let admin = format!("{TLS}listen.admin_address = \"10.0.0.1:1\"\n{client}");
    let closed = only(&admin);
    assert!(closed.allowed.contains("add an [[operator]]"), "a client's token does not open it");
}

#[test]
fn every_open_port_needs_tokens_and_all_that_lack_them_are_named() {
    let nobody = errors(&format!("{}{TLS}proxy.forwarded = \"replace\"", all_open()));
    assert_eq!(nobody.len(), PORTS.len(), "{nobody}");
    for (address, _) in PORTS {
        let holder = if address.contains("admin") { "an [[operator]]" } else { "a [[client]]" };
        let error = about(&nobody, address);
        assert!(error.allowed.contains(&format!("add {holder} with a token")), "{error}");
    }
    assert!(Config::from_toml(&format!("{}{TLS}{IDENTITIES}", all_open())).is_ok());
}
