use crate::support::{about, errors};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tidegate_server::config::{Config, NormalPath, RouteRule};

fn rule(lines: &str) -> RouteRule {
    let toml = format!("[[route]]\npriority = \"low\"\n{lines}");
    Config::from_toml(&toml).unwrap().routes.remove(0)
}

#[test]
fn a_prefix_matches_whole_segments() {
    let matches = |prefix: &str, path: &str| {
        let rule = rule(&format!("path_prefix = \"{prefix}\""));
        rule.matches(&Method::GET, &NormalPath::of(path), &HeaderMap::new())
    };
    assert!(matches("/v1/embed", "/v1/embed"));
    assert!(matches("/v1/embed", "/v1/embed/x"));
    assert!(!matches("/v1/embed", "/v1/embeddings"));
    assert!(!matches("/v1/embed", "/v1"));
    assert!(!matches("/v1/embed", "/V1/embed"));
    assert!(matches("/v1/", "/v1/x") && matches("/v1/", "/v1/"));
    assert!(!matches("/v1/", "/v1"));
    assert!(matches("/", "/anything"));
}

#[test]
fn all_conditions_must_hold() {
    let rule = rule(
        "path_prefix = \"/a\"\nmethod = \"POST\"\nheader = \"X-Kind\"\nheader_value = \"batch\"",
    );
    let name = HeaderName::from_static("x-kind");
    let mut headers = HeaderMap::new();
    assert!(!rule.matches(&Method::POST, &NormalPath::of("/a"), &headers));
    headers.append(&name, HeaderValue::from_static("other"));
    assert!(!rule.matches(&Method::POST, &NormalPath::of("/a"), &headers));
    headers.append(&name, HeaderValue::from_static("batch"));
    assert!(rule.matches(&Method::POST, &NormalPath::of("/a"), &headers), "any of several values");
    assert!(!rule.matches(&Method::GET, &NormalPath::of("/a"), &headers));
    assert!(!rule.matches(&Method::POST, &NormalPath::of("/b"), &headers));
}

#[test]
fn a_header_without_a_value_must_only_exist() {
    let rule = rule("header = \"x-kind\"");
    let name = HeaderName::from_static("x-kind");
    let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(""))]);
    assert!(rule.matches(&Method::GET, &NormalPath::of("/"), &headers));
    assert!(!rule.matches(&Method::GET, &NormalPath::of("/"), &HeaderMap::new()));
}

#[test]
fn incomplete_routes_are_errors() {
    let route = |lines: &str| errors(&format!("[[route]]\n{lines}"));
    let all = route("header_value = \"x\"");
    assert!(about(&all, "route[1].header_value").allowed.contains("header"), "{all}");
    assert!(about(&all, "route[1].priority").allowed.contains("a model"), "{all}");
    let all =
        route("priority = \"low\"\npath_prefix = \"v1\"\nmethod = \"post\"\nheader = \"a b\"");
    assert_eq!(all.len(), 3, "{all}");
}

#[test]
fn a_prefix_that_no_path_could_have_is_an_error_with_the_one_that_is_meant() {
    for (written, meant) in [("//admin", "/admin"), ("/%61dmin", "/admin"), ("/a/../b/", "/b/")] {
        let all = errors(&format!("[[route]]\npriority = \"low\"\npath_prefix = \"{written}\""));
        let allowed = &about(&all, "route[1].path_prefix").allowed;
        assert!(allowed.contains(&format!("{meant:?}")), "{all}");
    }
}
