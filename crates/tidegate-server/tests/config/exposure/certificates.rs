use super::all_open;
use crate::support::{about, errors, only};
use tidegate_server::config::{CertificateName, Config, Loader, show_text};

const FILES: &str = "tls.cert = \"c\"\ntls.key = \"k\"\n";
const ASKED: &str = "tls.cert = \"c\"\ntls.key = \"k\"\ntls.client_ca = \"ca\"\n";
const CLIENT: &str = "[[client]]\nname = \"a\"\ncertificate = \"DNS:A.example.com\"\n";
const OPERATOR: &str = "[[operator]]\nname = \"ops\"\ncertificate = \"URI:spiffe://x/ops\"\n";

#[test]
fn a_client_is_known_by_a_certificate_a_token_or_both() {
    let token = "token = \"0123456789abcdef\"\n";
    let loaded =
        Loader::new().file("f", format!("{ASKED}{CLIENT}{token}{OPERATOR}")).load().unwrap();
    let (clients, operators) = (&loaded.config.claims.clients, &loaded.config.claims.operators);
    assert_eq!(clients[0].certificate, CertificateName::dns("a.example.com"));
    assert!(clients[0].token.is_some() && operators[0].token.is_none());
    assert!(show_text(&loaded.origins).contains("DNS:a.example.com"), "a name is no secret");
    let neither = only("[[client]]\nname = \"a\"");
    assert!(neither.allowed.contains("or a certificate"), "{neither}");
}

#[test]
fn all_that_is_wrong_with_certificates_is_reported_at_once() {
    let wrong = errors(&format!(
        "{FILES}{CLIENT}[[client]]\nname = \"b\"\ncertificate = \"DNS:a.EXAMPLE.com\"\n\
         [[client]]\nname = \"c\"\ncertificate = \"CN=c\"\n{OPERATOR}"
    ));
    assert_eq!(wrong.len(), 4, "{wrong}");
    let twice = about(&wrong, "client[2].certificate");
    assert!(twice.allowed.contains("client[1] has this one"), "{twice}");
    let shape = about(&wrong, "client[3].certificate");
    assert!(shape.allowed.contains("exact subject alternative name"), "{shape}");
    for (key, asks) in [
        ("client[1].certificate", "listen.tls_client_ca"),
        ("operator[1].certificate", "listen.admin_tls_client_ca"),
    ] {
        let unasked = about(&wrong, key);
        assert_eq!(unasked.given, "a certificate that is never shown");
        assert!(unasked.allowed.contains(&format!("{asks} or tls.client_ca")), "{unasked}");
    }
    // Senders of usage records show certificates too.
    let off = "listen.tls = \"off\"\ningest.frames_tls = \"off\"\n";
    assert!(Config::from_toml(&format!("{ASKED}{off}{CLIENT}")).is_ok());
    let plain = only(&format!("{ASKED}{off}ingest.lines_tls = \"off\"\n{CLIENT}"));
    assert_eq!(plain.field, "client[1].certificate");
}

#[test]
fn certificates_open_the_ports_that_ask_for_them() {
    let decided = "claims.anonymous = \"refuse\"\nproxy.forwarded = \"off\"\n";
    let all = format!("{}{decided}{ASKED}{CLIENT}{OPERATOR}", all_open());
    assert!(Config::from_toml(&all).is_ok(), "{}", errors(&all));
    let asked = "listen.tls_client_ca = \"ca\"\nlisten.admin_tls_client_ca = \"ca\"\n\
                 ingest.frames_tls_client_ca = \"ca\"\n";
    let open = errors(&format!("{}{decided}{FILES}{asked}{CLIENT}{OPERATOR}", all_open()));
    assert_eq!(open.len(), 1, "{open}");
    let lines = about(&open, "ingest.lines_address");
    assert!(lines.allowed.contains("no client has a token"), "{lines}");
    let required = "ingest.tokens_required = true\n";
    assert!(Config::from_toml(&format!("{required}{ASKED}{CLIENT}")).is_ok());
    let unasked = format!("{required}{FILES}listen.tls_client_ca = \"ca\"\n{CLIENT}");
    assert_eq!(only(&unasked).field, "ingest.tokens_required");
}
