use crate::support::{about, errors};
use tidegate_server::config::Config;

const OPEN: &str = "workers.address = \"0.0.0.0:1\"\n";
const TOKEN: &str = "[[worker]]\nname = \"w\"\ntoken = \"0123456789abcdeh\"\n";

#[test]
fn the_port_for_workers_is_off_unless_it_is_asked_for() {
    assert!(!Config::from_toml("").unwrap().workers.enabled);
    let config = Config::from_toml("workers.enabled = true\n").unwrap();
    assert!(config.workers.enabled && config.workers.identities.is_empty());
    assert!(config.workers.address.ip().is_loopback());
}

#[test]
fn beyond_loopback_workers_need_tls_and_tokens() {
    let wrong = errors(OPEN);
    assert_eq!(wrong.len(), 2, "{wrong}");
    assert!(about(&wrong, "workers.address").allowed.contains("[[worker]]"), "{wrong}");
    assert!(about(&wrong, "workers.tls").allowed.contains("tls.cert"), "{wrong}");
    let plain = format!("{OPEN}workers.tls = \"off\"\n{TOKEN}");
    assert_eq!(Config::from_toml(&plain).unwrap().workers.identities.len(), 1);
    let files = format!("tls.cert = \"c\"\ntls.key = \"k\"\n{OPEN}{TOKEN}");
    assert!(Config::from_toml(&files).unwrap().workers.tls.is_some());
}

#[test]
fn the_token_of_a_worker_is_nobody_elses() {
    let client = "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdeh\"\n";
    let wrong = errors(&format!("{client}{TOKEN}"));
    assert!(about(&wrong, "worker[1].token").allowed.contains("client[1] has this one"), "{wrong}");
    let none = errors("[[worker]]\nname = \"w\"\n");
    let missing = about(&none, "worker[1].token");
    assert!(missing.allowed.contains("or a certificate"), "{missing}");
}

#[test]
fn a_worker_is_known_by_a_certificate_where_its_port_asks_for_one() {
    let worker = "[[worker]]\nname = \"w\"\ncertificate = \"DNS:w.example.com\"\n";
    let asked = "workers.tls_client_ca = \"ca\"\ntls.cert = \"c\"\ntls.key = \"k\"\n";
    let config = Config::from_toml(&format!("{OPEN}{asked}{worker}")).unwrap();
    assert!(config.workers.identities[0].token.is_none());
    assert!(config.workers.identities[0].certificate.is_some());
    let unasked = errors(&format!("tls.cert = \"c\"\ntls.key = \"k\"\n{worker}"));
    let wrong = about(&unasked, "worker[1].certificate");
    assert!(wrong.allowed.contains("workers.tls_client_ca or tls.client_ca"), "{wrong}");
}
