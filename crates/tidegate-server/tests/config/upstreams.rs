use crate::support::only;
use tidegate_server::config::{Config, Scheme};

fn toml(url: &str) -> String {
    format!("[[upstream]]\nurl = \"{url}\"")
}

#[test]
fn hosts_and_ports_are_read_from_every_scheme() {
    for (url, scheme, host, port, name) in [
        ("http://127.0.0.1:9001", Scheme::Http, "127.0.0.1", 9001, "127.0.0.1:9001"),
        ("h2c://[::1]:9001/", Scheme::H2c, "::1", 9001, "[::1]:9001"),
        ("HTTPS://Host.example", Scheme::Https, "host.example", 443, "host.example:443"),
        ("http://gpu_1", Scheme::Http, "gpu_1", 80, "gpu_1:80"),
        ("https://[fe80::1]", Scheme::Https, "fe80::1", 443, "[fe80::1]:443"),
    ] {
        let target = &Config::from_toml(&toml(url)).unwrap().upstreams[0];
        let found = (target.scheme, target.host.as_str(), target.port, target.name.as_str());
        assert_eq!(found, (scheme, host, port, name));
    }
}

#[test]
fn a_part_that_would_not_be_used_is_an_error() {
    let allowed = |url: &str| only(&toml(url)).allowed;
    assert!(allowed("http://a:1/v1").contains("path"));
    assert!(allowed("http://a:1//").contains("path"));
    assert!(allowed("http://a:1?x").contains("query"));
    assert!(allowed("http://a:1#x").contains("fragment"));
    assert!(allowed("http://me:secret@a:1").contains("password"));
    for port in ["0", "65536", "99999", "", "+1", "x"] {
        assert!(allowed(&format!("http://a:{port}")).contains("port"), "{port}");
    }
    for host in ["", "-", "a b", "ä", "a%20", "*"] {
        assert!(allowed(&format!("http://{host}:1")).contains("host"), "{host}");
    }
    for host in ["::1", "[::1", "[::1]9", "[1.2.3.4]", "[fe80::1%eth0]"] {
        assert!(allowed(&format!("http://{host}:1")).contains("brackets"), "{host}");
    }
}

#[test]
fn near_misses_are_suggested() {
    let suggestion = |url: &str| only(&toml(url)).suggestion;
    assert_eq!(suggestion("127.0.0.1:9001").as_deref(), Some("\"http://127.0.0.1:9001\""));
    assert_eq!(suggestion("htps://a").as_deref(), Some("\"https\""));
    assert_eq!(suggestion("ftp://a").as_deref(), Some("\"http\""));
    assert_eq!(suggestion(""), None);
}
