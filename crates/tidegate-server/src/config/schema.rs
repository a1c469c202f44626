use super::choice::Choice;
use super::field::{Fallback, Field, Kind, List, env_name};
use super::{Anonymous, ForwardedPolicy, HostPolicy, LogFormat};
use super::{clients, logging, routes};
use tidegate::admission::{Role, Sharing};

/// Names the configuration file; read by the command line, not here.
pub(super) const CONFIG_VARIABLE: &str = "TIDEGATE_CONFIG";

const fn integer(
    key: &'static str,
    (min, max): (u64, u64),
    default: &'static str,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Integer { min, max }, Fallback::Is(default), doc)
}

const fn millis(
    key: &'static str,
    range: (u64, u64),
    default: &'static str,
    doc: &'static str,
) -> Field {
    integer(key, range, default, doc).unit("ms")
}

const fn limit(key: &'static str, min: u64, fallback: Fallback, doc: &'static str) -> Field {
    Field::new(key, Kind::Integer { min, max: u16::MAX as u64 }, fallback, doc).unit("messages")
}

const fn word<C: Choice>(key: &'static str, default: &'static str, doc: &'static str) -> Field {
    Field::new(key, Kind::Word(C::NAMES), Fallback::Is(default), doc)
}

const fn text(
    key: &'static str,
    shape: &'static str,
    check: fn(&str) -> bool,
    doc: &'static str,
) -> Field {
    Field::new(key, Kind::Text { shape, check }, Fallback::Unset, doc)
}

const fn unset(key: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field::new(key, kind, Fallback::Unset, doc)
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// Every setting, section by section.
pub const SETTINGS: &[Field] = &[
    word::<Role>("role", "gate", "The part this node plays; its preset gives the limits below."),
    Field::new(
        "listen.address",
        Kind::Address,
        Fallback::Is("127.0.0.1:8000"),
        "Where requests arrive. Anything but loopback needs a [[client]] with a token.",
    ),
    Field::new(
        "listen.admin_address",
        Kind::Address,
        Fallback::Is("127.0.0.1:8001"),
        "Where health, metrics and administration answer. Loopback only.",
    ),
    integer("listen.threads", (0, 256), "0", "Threads that serve; 0 is one a core.")
        .unit("threads"),
    integer("listen.connections_max", (1, 1_000_000), "8192", "Connections open at once.")
        .unit("connections"),
    millis(
        "listen.header_timeout_ms",
        (100, 10 * MINUTE_MS),
        "30000",
        "How long the head of a request may take.",
    ),
    millis(
        "listen.shutdown_grace_ms",
        (0, HOUR_MS),
        "10000",
        "How long a shutdown waits for what is in flight.",
    ),
    unset("listen.tls_cert", Kind::Path, "PEM certificate chain to serve TLS with; needs tls_key."),
    unset("listen.tls_key", Kind::Path, "PEM private key of tls_cert."),
    limit(
        "admission.global_limit",
        1,
        Fallback::Preset(|limits| limits.global_limit),
        "Requests in flight at once, of all priorities.",
    )
    .alias(&["PENDING_RESPONSE_MAX_CONCURRENT"]),
    limit(
        "admission.high_limit",
        0,
        Fallback::Preset(|limits| limits.high),
        "Of these, how many may be High; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_HIGH_LIMIT"]),
    limit(
        "admission.normal_limit",
        0,
        Fallback::Preset(|limits| limits.normal),
        "Of these, how many may be Normal; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_NORMAL_LIMIT"]),
    limit(
        "admission.low_limit",
        0,
        Fallback::Preset(|limits| limits.low),
        "Of these, how many may be Low, which is refused first; 0: only the global limit binds.",
    )
    .alias(&["PENDING_RESPONSE_LOW_LIMIT"]),
    limit(
        "admission.critical_reserve",
        0,
        Fallback::TenthOfGlobal,
        "How much of the global limit Critical can use up; below it. A tenth of it if not set.",
    ),
    word::<Sharing>(
        "admission.sharing",
        "strict",
        "Whether a priority may use idle places of another: borrow, or never: strict.",
    ),
    Field::new(
        "admission.warn_threshold",
        Kind::Ratio { min: 0.0, max: 1.0 },
        Fallback::Is("0.8"),
        "Fill of a limit that is worth a warning.",
    )
    .unit("of the limit")
    .alias(&["PENDING_RESPONSE_WARN_THRESHOLD"]),
    millis(
        "admission.retry_after_min_ms",
        (1, MINUTE_MS),
        "50",
        "The shortest time after which a refused client is told to come back.",
    ),
    millis("admission.retry_after_max_ms", (1_000, HOUR_MS), "30000", "The longest such time."),
    word::<Anonymous>(
        "claims.anonymous",
        "high",
        "The highest priority that a request without a token may claim; refuse turns it away.",
    ),
    millis(
        "proxy.connect_timeout_ms",
        (1, 10 * MINUTE_MS),
        "2000",
        "Until a connection to an upstream stands.",
    ),
    millis(
        "proxy.response_timeout_ms",
        (1, DAY_MS),
        "120000",
        "Until the head of an upstream's response is there.",
    ),
    millis("proxy.stream_idle_timeout_ms", (1, DAY_MS), "300000", "Between two pieces of a body."),
    integer(
        "proxy.idle_connections_max",
        (0, 65_535),
        "256",
        "Idle connections kept for each upstream and thread.",
    )
    .unit("connections"),
    millis(
        "proxy.idle_timeout_ms",
        (1, HOUR_MS),
        "4000",
        "How long an idle connection is kept; below the 5 s after which many servers close.",
    ),
    millis(
        "proxy.health_interval_ms",
        (50, 10 * MINUTE_MS),
        "1000",
        "Between two health checks of an upstream.",
    ),
    word::<HostPolicy>(
        "proxy.host",
        "preserve",
        "The Host that an upstream sees: the client's (preserve) or its own (upstream).",
    ),
    word::<ForwardedPolicy>(
        "proxy.forwarded",
        "append",
        "What happens to Forwarded and X-Forwarded-*: append, replace (at the edge) or off.",
    ),
    unset(
        "proxy.tls_ca",
        Kind::Path,
        "PEM bundle to trust for https upstreams; the system's if not set.",
    ),
    Field::new(
        "log.level",
        Kind::Text { shape: logging::SHAPE, check: logging::is_filter },
        Fallback::Is("info"),
        "What is logged: a level, or directives such as \"info,hyper=warn\".",
    ),
    word::<LogFormat>("log.format", "text", "Lines for people (text) or for machines (json)."),
];

/// Every list.
pub const LISTS: &[List] = &[
    List {
        key: "upstream",
        doc: "What requests are passed on to.",
        max: 1024,
        short: Some("url"),
        example: &[("url", "http://127.0.0.1:9001")],
        fields: &[unset(
            "url",
            Kind::Url,
            "http (HTTP/1.1, gRPC by h2c), h2c (HTTP/2 without TLS) or https; host and port only.",
        )],
    },
    List {
        key: "client",
        doc: "Who may claim which priority, known by a bearer token.",
        max: 10_000,
        short: None,
        example: &[("name", "batch"), ("token_env", "BATCH_TOKEN"), ("max_priority", "low")],
        fields: &[
            text("name", clients::NAME_SHAPE, clients::is_name, "Its name in logs and metrics."),
            unset(
                "token",
                Kind::Secret { shape: clients::TOKEN_SHAPE, check: clients::is_token },
                "The token itself.",
            ),
            text(
                "token_env",
                "the name of an environment variable",
                clients::is_variable,
                "The environment variable that has the token: keeps it out of this file.",
            ),
            Field::new(
                "max_priority",
                Kind::Priority,
                Fallback::Is("high"),
                "The highest priority it may claim.",
            ),
        ],
    },
    List {
        key: "route",
        doc: "Which requests have which priority; the first that matches decides.",
        max: 1024,
        short: None,
        example: &[("path_prefix", "/v1/embeddings"), ("method", "POST"), ("priority", "low")],
        fields: &[
            text(
                "path_prefix",
                "a path that starts with \"/\", without query",
                routes::is_path,
                "Path and all below it, by whole segments.",
            ),
            text("method", "an HTTP method in capitals", routes::is_method, "HTTP method."),
            text(
                "header",
                "the name of a header",
                routes::is_header_name,
                "A header it must have.",
            ),
            text(
                "header_value",
                "a header's value in visible ASCII",
                routes::is_header_value,
                "The exact value of that header.",
            ),
            unset("priority", Kind::Priority, "The priority of what matches."),
        ],
    },
];

/// The setting of that key.
pub(super) fn setting(key: &str) -> Option<&'static Field> {
    SETTINGS.iter().find(|field| field.key == key)
}

/// The list of that key.
pub(super) fn list(key: &str) -> Option<&'static List> {
    LISTS.iter().find(|list| list.key == key)
}

/// The sections of the file, in the order of the table.
pub(super) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<_> = SETTINGS.iter().filter_map(Field::section).collect();
    sections.dedup();
    sections
}

/// Every key that a file may have outside of lists.
pub(super) fn known_keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|field| field.key).chain(LISTS.iter().map(|list| list.key))
}

/// Whether this environment name already means a setting or a list.
pub(super) fn env_name_is_setting(name: &str) -> bool {
    SETTINGS.iter().any(|field| field.env_names().any(|known| known == name))
        || LISTS.iter().any(|list| env_name(list.key) == name)
        || name == CONFIG_VARIABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Raw;
    use std::collections::BTreeSet;

    fn all_fields() -> impl Iterator<Item = &'static Field> {
        SETTINGS.iter().chain(LISTS.iter().flat_map(|list| list.fields))
    }

    #[test]
    fn every_field_is_documented_in_one_line() {
        for field in all_fields() {
            assert!(!field.doc.is_empty() && !field.doc.contains('\n'), "{}", field.key);
            assert!(!field.kind.allowed(field.unit).is_empty(), "{}", field.key);
            assert!(field.key.len() + field.doc.len() < 120, "{}", field.key);
        }
    }

    #[test]
    fn every_default_is_allowed() {
        for field in all_fields() {
            if let Fallback::Is(text) = field.fallback {
                let parsed = field.kind.parse(&Raw::Untyped(text.to_owned()));
                assert!(parsed.is_ok(), "{}: {parsed:?}", field.key);
            }
        }
    }

    #[test]
    fn keys_and_environment_names_are_unique() {
        let mut keys = BTreeSet::new();
        let mut names = BTreeSet::from(["TIDEGATE_CONFIG".to_owned(), env_name("upstream")]);
        for field in SETTINGS {
            assert!(keys.insert(field.key), "{}", field.key);
            for name in field.env_names() {
                assert!(names.insert(name.clone()), "{name}");
            }
        }
        assert!(LISTS.iter().all(|list| keys.insert(list.key)));
    }

    #[test]
    fn a_section_stands_in_one_place() {
        let sections = sections();
        assert_eq!(sections.len(), sections.iter().collect::<BTreeSet<_>>().len(), "{sections:?}");
    }

    #[test]
    fn whole_numbers_of_time_say_their_unit_in_the_key() {
        for field in all_fields() {
            assert_eq!(field.unit == Some("ms"), field.key.ends_with("_ms"), "{}", field.key);
        }
    }
}
