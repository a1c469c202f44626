//! Files that can't be used are all told at the start.

use crate::authority::{Authority, set_mode};
use crate::node::TestNode;
use rcgen::date_time_ymd;
use tidegate_server::config::Config;
use tidegate_server::http::check_tls_files;

fn refusal(toml: &str) -> String {
    match TestNode::try_start(toml) {
        Ok(_) => panic!("it started"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn everything_wrong_is_told_at_once() {
    let authority = Authority::new();
    let expired = authority.issue_with("expired", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let early =
        authority.issue_with("early", |params| params.not_before = date_time_ymd(3000, 1, 1));
    let (one, other) = (authority.issue("one"), authority.issue("other"));
    let exposed = authority.issue("exposed");
    exposed.set_key_mode(0o644);
    let garbage = authority.issue("garbage");
    std::fs::write(&garbage.cert, "no certificate").unwrap();
    let toml = format!(
        "[tls]\ncert = {:?}\nkey = {:?}\n[listen]\n\
         tls_cert = {:?}\ntls_key = {:?}\ntls_client_ca = {:?}\n\
         admin_tls_cert = {:?}\nadmin_tls_key = {:?}\n[ingest]\n\
         frames_tls_cert = {:?}\nframes_tls_key = \"/no/such/key.pem\"\n",
        exposed.cert,
        exposed.key,
        expired.cert,
        expired.key,
        garbage.cert,
        one.cert,
        other.key,
        early.cert,
    );
    let told = refusal(&toml);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "6 errors in TLS files:", "{told}");
    for says in [
        ["data: ", "expired at 2021-01-01T00:00:00Z; renew it"],
        [
            "data: ",
            "garbage.cert.pem has nothing to use; give a PEM file with certificate authorities",
        ],
        ["admin: ", "give the key that the certificate was issued for"],
        ["frames: ", "not valid before 3000-01-01T00:00:00Z"],
        ["frames: ", "/no/such/key.pem is no readable PEM file"],
        ["lines: ", "(mode 0644): chmod 640"],
    ] {
        let is_told = |line: &&str| says.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(is_told), "{says:?}: {told}");
    }
    let config = Config::from_toml(&toml).unwrap();
    assert_eq!(check_tls_files(&config).unwrap_err().to_string(), told);
}

#[test]
fn a_certificate_in_place_of_a_key_is_not_called_a_key() {
    let authority = Authority::new();
    let issued = authority.issue("server");
    set_mode(&issued.cert, 0o644);
    let told = refusal(&format!("[tls]\ncert = {:?}\nkey = {:?}\n", issued.cert, issued.cert));
    assert!(told.contains("has nothing to use; give a PEM file with a private key"), "{told}");
    assert!(!told.contains("every user can read"), "{told}");
}

#[test]
fn what_is_wrong_with_shared_files_is_told_once() {
    let authority = Authority::new();
    let issued = authority.issue("server");
    issued.set_key_mode(0o604);
    let told = refusal(&issued.toml());
    assert!(told.starts_with("1 error in TLS files:\n  data, admin, frames, lines: "), "{told}");
    set_mode(&issued.key, 0o640);
    drop(TestNode::start(&issued.toml()));
}

#[test]
fn an_empty_chain_and_a_certificate_that_is_none_are_refused() {
    let authority = Authority::new();
    let issued = authority.issue("server");
    std::fs::write(&issued.cert, "").unwrap();
    assert!(
        refusal(&issued.toml())
            .contains("has nothing to use; give a PEM file with a certificate chain")
    );
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&issued.cert, broken).unwrap();
    assert!(refusal(&issued.toml()).contains("is not valid X.509"));
}
