use super::{IDENTITIES, PORTS, all_open};
use crate::support::{about, errors, only};
use std::path::Path;
use tidegate_server::config::Config;

#[test]
fn an_open_port_needs_tls_or_the_decision_for_plain_text() {
    let open = all_open();
    let undecided = errors(&format!("{open}{IDENTITIES}"));
    assert_eq!(undecided.len(), PORTS.len(), "{undecided}");
    for (address, mode) in PORTS {
        let error = about(&undecided, mode);
        assert!(error.allowed.contains(&format!("TLS while {address} is 0.0.0.0")), "{error}");
        assert!(error.allowed.contains("set tls.cert and tls.key, or "), "{error}");
        assert!(error.allowed.contains(&format!("{mode} = \"off\" for plain text")), "{error}");
    }
    let off: String = PORTS.iter().map(|(_, mode)| format!("{mode} = \"off\"\n")).collect();
    assert!(Config::from_toml(&format!("{open}{off}{IDENTITIES}")).is_ok());
    let shared = "tls.cert = \"c\"\ntls.key = \"k\"\n";
    assert!(Config::from_toml(&format!("{open}{shared}{IDENTITIES}")).is_ok());
    let own: String = PORTS
        .iter()
        .map(|(_, mode)| format!("{mode}_cert = \"c\"\n{mode}_key = \"k\"\n"))
        .collect();
    assert!(Config::from_toml(&format!("{open}{own}{IDENTITIES}")).is_ok());
}

#[test]
fn a_port_has_the_shared_files_its_own_or_none() {
    let config = Config::from_toml(
        "[tls]\ncert = \"c\"\nkey = \"k\"\nclient_ca = \"ca\"\n[listen]\n\
         admin_tls_cert = \"c2\"\nadmin_tls_key = \"k2\"\nadmin_tls_client_ca = \"ca2\"\n\
         [ingest]\nframes_tls = \"off\"\nlines_tls_client_ca = \"ca3\"\n",
    );
    let Config { listen, ingest, .. } = config.unwrap();
    let files = |files: Option<tidegate_server::config::TlsFiles>| {
        let files = files.unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        [text(&files.cert), text(&files.key), text(&files.client_ca.unwrap())]
    };
    assert_eq!(files(listen.tls), ["c", "k", "ca"]);
    assert_eq!(files(listen.admin_tls), ["c2", "k2", "ca2"]);
    assert_eq!(ingest.frames_tls, None);
    assert_eq!(files(ingest.lines_tls), ["c", "k", "ca3"]);
    assert_eq!(Config::default().listen.admin_tls, None, "plain text on loopback");
}

#[test]
fn contradictions_are_reported() {
    for (alone, missing) in [
        ("tls.cert", "tls.key"),
        ("tls.key", "tls.cert"),
        ("listen.admin_tls_key", "listen.admin_tls_cert"),
        ("ingest.frames_tls_cert", "ingest.frames_tls_key"),
    ] {
        let error = only(&format!("{alone} = \"file\""));
        assert_eq!(error.field, missing);
        assert!(error.allowed.contains(&format!("beside {alone}")), "{error}");
    }
    let nobody = only("ingest.lines_tls_client_ca = \"ca\"");
    assert!(nobody.allowed.contains("set tls.cert and tls.key"), "{nobody}");
    let unused = only(
        "listen.admin_tls = \"off\"\nlisten.admin_tls_cert = \"c\"\nlisten.admin_tls_key = \"k\"",
    );
    assert_eq!(unused.field, "listen.admin_tls");
}
