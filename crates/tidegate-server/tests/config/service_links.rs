//! Variables that a container platform sets for every service: Kubernetes gives each process
//! `TIDEGATE_SERVICE_HOST`, `TIDEGATE_PORT=tcp://…` and the like for a service named `tidegate`.

use crate::support::{Documentation, env, names};
use tidegate_server::config::{Loader, Origin};

/// Values of service links; only some settings accept one of them.
const LINKS: [&str; 2] = ["tcp://10.0.0.1:8000", "http://a:1"];

const PLATFORM: [(&str, &str); 5] = [
    ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
    ("TIDEGATE_SERVICE_PORT_HTTP", "8000"),
    ("TIDEGATE_PORT", "tcp://10.0.0.1:8000"),
    ("TIDEGATE_PORT_8000_TCP_ADDR", "10.0.0.1"),
    ("TIDEGATE_ADMIN_PORT_8001_TCP", "tcp://10.0.0.1:8001"),
];

/// True for a name that a platform could give to a service link.
fn is_link_name(name: &str) -> bool {
    let is_numbered = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.ends_with("_PORT")
        || name.split_once("_PORT_").is_some_and(is_numbered)
}

/// The names of all settings, with those that another program has established, and of lists.
fn own_names() -> Vec<String> {
    let settings = Documentation::read().settings.into_iter();
    let mut own: Vec<_> = settings.flat_map(|setting| setting.env_names).chain(names()).collect();
    own.sort();
    own.dedup();
    own
}

#[test]
fn variables_of_a_container_platform_are_ignored() {
    for (name, value) in PLATFORM {
        assert!(is_link_name(name), "{name}");
        let loaded = Loader::new().env(env(&[(name, value)])).load().unwrap();
        assert!(loaded.origins.iter().all(|setting| !setting.origin.is_explicit()), "{name}");
    }
    let guess = env(&[("TIDEGATE_LISTEN_PORT", "8000")]);
    assert!(Loader::new().env(guess).load().is_err(), "a guess at a setting");
}

#[test]
fn own_variables_are_never_taken_for_service_links() {
    for name in own_names() {
        assert!(!is_link_name(&name), "a platform could set {name}");
        for link in LINKS {
            let origin = Origin::Env(name.clone());
            let is_read = match Loader::new().env(env(&[(&name, link)])).load() {
                Ok(loaded) => loaded.origins.iter().any(|setting| setting.origin == origin),
                Err(errors) => errors.iter().any(|error| error.origin == origin),
            };
            assert!(is_read, "{name}={link} is ignored");
        }
    }
}
