use crate::support::{about, effective, env, errors, only};
use std::time::Duration;
use tidegate::{MessagePriority, Role, Sharing};
use tidegate_server::config::{
    Anonymous, Config, Loader, Origin, Scheme, TokenDigest, init_file, masked, show_json, show_text,
};

#[test]
fn the_default_is_the_gate_preset() {
    let config = Config::from_toml("").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.role, Role::Gate);
    assert_eq!(config.admission.limits, Role::Gate.limits());
    assert_eq!(config.admission.sharing, Sharing::Strict);
    assert_eq!(config.admission.retry, tidegate::admission::RetryBounds::default());
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:8000");
    assert_eq!(config.listen.admin_address.to_string(), "127.0.0.1:8001");
    assert!(config.listen.threads >= 1 && config.listen.tls.is_none());
    assert_eq!(config.claims.anonymous, Anonymous::UpTo(MessagePriority::High));
    assert_eq!(config.proxy.idle_timeout, Duration::from_secs(4));
    assert!(config.upstreams.is_empty() && config.routes.is_empty());
}

const EVERYTHING: &str = r#"
role = "worker"
[listen]
address = "0.0.0.0:80"
threads = 3
tls_cert = "cert.pem"
tls_key = "key.pem"
[admission]
global_limit = 100
low_limit = 0
sharing = "borrow"
warn_threshold = 1
[claims]
anonymous = "refuse"
[proxy]
host = "upstream"
forwarded = "off"
[log]
level = "info,hyper=warn"
format = "json"
[[upstream]]
url = "https://[::1]"
[[upstream]]
url = "h2c://Models.example:9"
[[client]]
name = "batch"
token = "0123456789abcdef"
max_priority = "low"
share = 0.25
[[client]]
name = "front"
token = "0123456789abcdeg"
[[route]]
method = "POST"
header = "X-Kind"
header_value = "batch"
priority = "low"
"#;

#[test]
fn a_file_can_set_everything() {
    let config = Config::from_toml(EVERYTHING).unwrap();
    assert_eq!(config.role, Role::Worker);
    assert_eq!(config.listen.threads, 3);
    let limits = config.admission.limits;
    assert_eq!((limits.global_limit, limits.high, limits.low), (100, 250, 0));
    assert_eq!(limits.critical_reserve, 10, "a tenth of the limit that holds, not of the preset");
    assert_eq!(limits.of(MessagePriority::High), 100, "a preset above the limit is clamped");
    assert_eq!(config.claims.anonymous, Anonymous::Refuse);
    assert_eq!(config.claims.clients[0].max_priority, MessagePriority::Low);
    let shares: Vec<_> = config.claims.clients.iter().map(|client| client.share).collect();
    assert_eq!(shares, [Some(0.25), None]);
    let names: Vec<_> = config.upstreams.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["[::1]:443", "models.example:9"]);
    assert_eq!(config.upstreams[1].scheme, Scheme::H2c);
    assert_eq!(config.routes[0].header.as_ref().unwrap().name, "x-kind");
}

const FULL_OF_ERRORS: &str = r#"
rolle = "gate"
[admission]
hihg_limit = 50
global_limit = 70000
normal_limit = "300"
warn_threshold = 1.5
sharing = "borow"
[listn]
address = "x"
[listen]
address = "localhost:8000"
connections_max = -1
admin_address = "0.0.0.0:8001"
tls_cert = "cert.pem"
[log]
level = "inof"
[[client]]
name = "a"
token = "hunter2"
max_priority = "critical"
[[client]]
name = "b c"
share = 1.5
[[route]]
priority = "critical"
[[upstream]]
url = "http://h:1/path"
[[upstream]]
uri = "http://h:1"
"#;

/// Field, origin, given, allowed, suggestion.
type Expected = (&'static str, &'static str, &'static str, &'static str, Option<&'static str>);

const EXPECTED: &[Expected] = &[
    ("rolle", "file tg.toml:2", "unknown key", "config init", Some("role")),
    ("admission.hihg_limit", "tg.toml:4", "unknown key", "keys", Some("admission.high_limit")),
    ("admission.global_limit", "tg.toml:5", "70000", "1 … 65535 messages", None),
    ("admission.normal_limit", "tg.toml:6", "the string \"300\"", "whole number, 0 …", None),
    ("admission.warn_threshold", "tg.toml:7", "1.5", "0.0 … 1.0", None),
    ("admission.sharing", "tg.toml:8", "\"borow\"", "\"strict\" or", Some("\"borrow\"")),
    ("listn", "tg.toml:9", "unknown section", "keys", Some("[listen]")),
    ("listen.address", "tg.toml:12", "localhost", "IP", Some("\"127.0.0.1:8000\"")),
    ("listen.connections_max", "tg.toml:13", "-1", "1 … 1000000 connections", None),
    ("listen.admin_address", "tg.toml:14", "0.0.0.0:8001", "add an [[operator]]", None),
    ("listen.admin_tls", "tg.toml:14", "no certificate", "or listen.admin_tls = \"off\"", None),
    ("listen.tls_key", "tg.toml:15", "nothing", "beside listen.tls_cert", None),
    ("log.level", "tg.toml:17", "\"inof\"", "error, warn, info", Some("\"info\"")),
    ("client[1].token", "tg.toml:20", "7 characters", "16 … 512", None),
    ("client[1].max_priority", "tg.toml:21", "\"critical\"", "control plane alone", None),
    ("client[2].name", "tg.toml:23", "\"b c\"", "1 … 64 letters", None),
    ("client[2].share", "tg.toml:24", "1.5", "0.0 … 1.0", None),
    ("client[2].token", "tg.toml:22", "nothing", "one of token", None),
    ("route[1].priority", "tg.toml:26", "\"critical\"", "control plane alone", None),
    ("route[1]", "tg.toml:25", "no condition", "at least one of", None),
    ("upstream[1].url", "tg.toml:28", "http://h:1/path", "no path", None),
    ("upstream[2].uri", "tg.toml:30", "unknown key", "keys", Some("url")),
    ("upstream[2].url", "tg.toml:29", "nothing", "scheme", None),
    (
        "TIDEGATE_ADMISSION_LOW_LIMT",
        "env TIDEGATE_ADMISSION_LOW_LIMT",
        "unknown variable",
        "variables",
        Some("TIDEGATE_ADMISSION_LOW_LIMIT"),
    ),
    ("proxy.connect_timeout_ms", "env TIDEGATE_PROXY_CONN", "\"2s\"", "1 … 600000 ms", None),
    ("admission.retry_after_min_ms", "flag --set", "\"0\"", "1 … 60000 ms", None),
    ("proxy.idle_timout_ms", "flag", "unknown key", "keys", Some("proxy.idle_timeout_ms")),
    ("client[9].token", "flag", "part of a list", "[[client]]", None),
];

#[test]
fn every_error_is_listed_at_once() {
    let errors = Loader::new()
        .file("tg.toml", FULL_OF_ERRORS)
        .env(env(&[
            ("TIDEGATE_ADMISSION_LOW_LIMT", "5"),
            ("TIDEGATE_PROXY_CONNECT_TIMEOUT_MS", "2s"),
            ("TIDEGATE_TEST_ANYTHING", "1"),
            ("TIDEGATE_CONFIG", "tg.toml"),
            ("HOME", "/"),
        ]))
        .flag("--set", "admission.retry_after_min_ms", "0")
        .flag("--set", "proxy.idle_timout_ms", "5")
        .flag("--set", "client[9].token", "very-secret-thing")
        .load()
        .unwrap_err();

    for (field, origin, given, allowed, suggestion) in EXPECTED {
        let error = about(&errors, field);
        assert!(error.origin.to_string().contains(origin), "{error}");
        assert!(error.given.contains(given), "{error}");
        assert!(error.allowed.contains(allowed), "{error}");
        assert_eq!(error.suggestion.as_deref(), *suggestion, "{error}");
    }
    assert_eq!(errors.len(), EXPECTED.len(), "{errors}");
    let text = errors.to_string();
    assert_eq!(text.lines().count(), errors.len() + 1, "a heading, then one line each: {text}");
    assert!(text.starts_with(&format!("{} errors", errors.len())));
    assert!(!text.contains("very-secret-thing") && !text.contains("hunter2"), "{text}");
}

const LAYERED: &str = r#"role = "manager"
[admission]
high_limit = 1
low_limit = 1
normal_limit = 1
[[upstream]]
url = "http://file:1"
"#;

#[test]
fn later_layers_win_and_origins_tell_which() {
    let loader = Loader::new()
        .file("tg.toml", LAYERED)
        .env(env(&[
            ("TIDEGATE_ADMISSION_LOW_LIMIT", "2"),
            ("TIDEGATE_ADMISSION_NORMAL_LIMIT", "2"),
            ("TIDEGATE_UPSTREAM", "http://env:1, http://env:2"),
        ]))
        .flag("--normal-limit", "admission.normal_limit", "3");
    let loaded = loader.load().unwrap();
    let limits = loaded.config.admission.limits;
    assert_eq!((limits.high, limits.low, limits.normal), (1, 2, 3));
    assert_eq!(loaded.config.upstreams.len(), 2, "the environment replaces the file's list");

    let origin = |key: &str| {
        loaded.origins.iter().find(|setting| setting.key == key).unwrap().origin.to_string()
    };
    assert_eq!(origin("role"), "file tg.toml:1");
    assert_eq!(origin("admission.high_limit"), "file tg.toml:3");
    assert_eq!(origin("admission.low_limit"), "env TIDEGATE_ADMISSION_LOW_LIMIT");
    assert_eq!(origin("admission.normal_limit"), "flag --normal-limit");
    assert_eq!(origin("admission.global_limit"), "preset manager");
    assert_eq!(origin("admission.critical_reserve"), "preset manager");
    assert_eq!(origin("listen.threads"), "default");
    assert_eq!(origin("upstream[2].url"), "env TIDEGATE_UPSTREAM");

    let by_flag = loader.flag("--set", "upstream", "h2c://flag:1").load().unwrap();
    assert_eq!(by_flag.config.upstreams[0].name, "flag:1");
    assert_eq!(by_flag.config.upstreams.len(), 1, "flags replace the environment's");
}

#[test]
fn the_established_environment_names_work_and_must_not_disagree() {
    let names = [
        ("PENDING_RESPONSE_MAX_CONCURRENT", "900"),
        ("PENDING_RESPONSE_HIGH_LIMIT", "800"),
        ("PENDING_RESPONSE_NORMAL_LIMIT", "70"),
        ("PENDING_RESPONSE_LOW_LIMIT", "60"),
        ("PENDING_RESPONSE_WARN_THRESHOLD", "0.5"),
    ];
    let config = Loader::new().env(env(&names)).load().unwrap().config;
    let limits = config.admission.limits;
    assert_eq!((limits.global_limit, limits.high, limits.normal, limits.low), (900, 800, 70, 60));
    assert!((config.admission.warn_threshold - 0.5).abs() < f64::EPSILON);

    let same = env(&[("PENDING_RESPONSE_LOW_LIMIT", "7"), ("TIDEGATE_ADMISSION_LOW_LIMIT", "07")]);
    assert_eq!(Loader::new().env(same).load().unwrap().config.admission.limits.low, 7);

    let other = env(&[("PENDING_RESPONSE_LOW_LIMIT", "7"), ("TIDEGATE_ADMISSION_LOW_LIMIT", "8")]);
    let errors = Loader::new().env(other).load().unwrap_err();
    let line = about(&errors, "admission.low_limit").to_string();
    for part in ["PENDING_RESPONSE_LOW_LIMIT", "TIDEGATE_ADMISSION_LOW_LIMIT", "\"7\"", "\"8\""] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn limits_must_fit_together() {
    let error = only("[admission]\nglobal_limit = 100\nhigh_limit = 101");
    assert_eq!((error.field.as_str(), error.given.as_str()), ("admission.high_limit", "101"));
    assert!(error.allowed.contains("0 … 100"), "{error}");
    assert!(Config::from_toml("[admission]\nglobal_limit = 100\nhigh_limit = 100").is_ok());
    assert!(Config::from_toml("[admission]\nglobal_limit = 1").is_ok(), "presets are clamped");

    let error = only("[admission]\nglobal_limit = 10\ncritical_reserve = 10");
    assert!(error.allowed.contains("0 … 9"), "{error}");
    let error = only("[admission]\nretry_after_min_ms = 2000\nretry_after_max_ms = 1000");
    assert_eq!(error.field, "admission.retry_after_min_ms");
}

#[test]
fn two_listeners_need_two_ports() {
    let error = only("listen.address = \"127.0.0.1:8001\"");
    assert_eq!(error.field, "listen.address");
    assert!(error.allowed.contains("listen.admin_address"), "{error}");
    let same = "[listen]\naddress = \"127.0.0.1:0\"\nadmin_address = \"127.0.0.1:0\"";
    assert!(Config::from_toml(same).is_ok(), "port 0 is whatever is free");
}

#[test]
fn tokens_stay_secret() {
    let secret = "correct-horse-battery";
    let file = format!("[[client]]\nname = \"a\"\ntoken = \"{secret}\"");
    let loaded = Loader::new().file("tg.toml", &file).load().unwrap();
    assert_eq!(loaded.config.claims.clients[0].token, Some(TokenDigest::of(secret.as_bytes())));
    for shown in [
        format!("{loaded:?}"),
        show_text(&loaded.origins),
        show_json(&loaded.origins).to_string(),
        errors(&format!("{file}\n[[client]]\nname = \"b\"\ntoken = \"{secret}\"")).to_string(),
        errors(&format!("[[client]]\nname = \"a\"\ntokn = \"{secret}\"")).to_string(),
        errors(&format!("[[client]]\nname = \"a\"\ntoken = \"{secret} \"")).to_string(),
        errors(&format!("{file} \"")).to_string(),
        errors(&format!("token = \"{secret}\"")).to_string(),
        errors(&format!("[[upstream]]\nurl = \"http://me:{secret}@h\"")).to_string(),
        errors(&format!("[[upstream]]\nurl = \"me:{secret}@h\"")).to_string(),
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_token_can_come_from_the_environment() {
    let file = "[[client]]\nname = \"a\"\ntoken_env = \"TIDEGATE_BATCH_TOKEN\"";
    let load = |pairs: &[(&str, &str)]| Loader::new().file("f", file).env(env(pairs)).load();
    let loaded = load(&[("TIDEGATE_BATCH_TOKEN", "0123456789abcdef")]).unwrap();
    assert_eq!(loaded.config.claims.clients[0].token, Some(TokenDigest::of(b"0123456789abcdef")));

    let unset = load(&[]).unwrap_err();
    assert!(about(&unset, "client[1].token_env").given.contains("not set"), "{unset}");
    let weak = load(&[("TIDEGATE_BATCH_TOKEN", "hunter2")]).unwrap_err();
    assert!(weak.to_string().contains("7 characters") && !weak.to_string().contains("hunter2"));
    let both = format!("{file}\ntoken = \"0123456789abcdef\"");
    assert!(errors(&both).to_string().contains("token and token_env"));
}

#[test]
fn entries_are_unique_and_bounded() {
    let client = |name, token| format!("[[client]]\nname = \"{name}\"\ntoken = \"{token}\"\n");
    let names = client("a", "0123456789abcdef") + &client("a", "0123456789abcdeX");
    assert_eq!(only(&names).field, "client[2].name");
    let tokens = client("a", "0123456789abcdef") + &client("b", "0123456789abcdef");
    assert_eq!(only(&tokens).field, "client[2].token");
    let twice = "[[upstream]]\nurl = \"http://a\"\n[[upstream]]\nurl = \"h2c://A:80\"";
    assert!(only(twice).allowed.contains("upstream[1]"));

    let many = |count: usize| -> String {
        (0..count).map(|n| format!("[[upstream]]\nurl = \"http://h{n}\"\n")).collect()
    };
    assert_eq!(Config::from_toml(&many(1000)).unwrap().upstreams.len(), 1000);
    assert!(only(&many(1001)).allowed.contains("at most 1000"));
}

#[test]
fn values_of_another_shape_are_errors() {
    assert!(only("listen = 5").allowed.contains("[listen]"));
    assert!(only("client = \"a\"").allowed.contains("[[client]]"));
    assert!(only("[client]\nname = \"a\"").allowed.contains("[[client]]"));
    assert!(only("upstream = [\"http://a\"]").allowed.contains("[[upstream]]"));
    assert_eq!(only("[admission.high_limit]\nx = 1").given, "a table");
    assert_eq!(only("[clients]\nx = 1").suggestion.as_deref(), Some("[[client]]"));
    assert_eq!(only("role = true").given, "true");
    assert_eq!(only("dry_run = \"yes\"").allowed, "true or false");
    assert_eq!(only("dry_run = 1").given, "1");
    assert_eq!(only("[admission]\nwarn_threshold = nan").given, "nan");
    assert_eq!(only("[listen]\nthreads = 99999999999999999999").field, "listen.threads");
}

#[test]
fn broken_toml_is_one_error_with_its_position() {
    let error = only("role = \"gate\"\n[admission\nhigh_limit = 5\n");
    assert!(error.given.contains("line 2, column 11"), "{error}");
    assert_eq!(error.origin, Origin::File { path: "<toml>".to_owned(), line: 2 });
    assert_eq!(error.to_string().lines().count(), 1);
}

#[test]
fn the_initial_file_has_exactly_the_defaults() {
    let file = init_file();
    assert_eq!(Config::from_toml(&file).unwrap(), Config::default());

    // The same holds with every default uncommented.
    let keys: Vec<_> = effective().into_iter().map(|setting| setting.key).collect();
    let names: Vec<_> = keys.iter().filter_map(|key| key.split('.').next_back()).collect();
    let is_default = |line: &str| {
        let key = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
        key.is_some_and(|(key, _)| names.contains(&key))
    };
    let (settings, lists) =
        file.split_at(file.find("# Servers that requests are forwarded to").unwrap());
    // A setting without a default has an example.
    let unset = |line: &str| {
        let key = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
        let key = key.map(|(key, _)| key).filter(|key| names.contains(key));
        key.is_some_and(|key| {
            let is_it = |name: &str| name == key || name.ends_with(&format!(".{key}"));
            effective().iter().any(|setting| is_it(&setting.key) && setting.value.is_none())
        })
    };
    let uncommented: String = settings
        .lines()
        .filter(|line| !unset(line))
        .map(|line| line.strip_prefix('#').filter(|_| is_default(line)).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    let loaded = Loader::new().file("f", uncommented).load().unwrap();
    assert_eq!(loaded.config, Config::default());
    let explicit = loaded.origins.iter().filter(|setting| setting.origin.is_explicit()).count();
    let unset = loaded.origins.iter().filter(|setting| setting.value.is_none()).count();
    assert_eq!(explicit + unset, keys.len());

    // The examples of lists are valid too.
    let examples: String = lists
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with("[[") || (line.contains(" = ") && !line.starts_with(' ')))
        .flat_map(|line| [line, "\n"])
        .collect();
    let variables = env(&[
        ("BATCH_TOKEN", "0123456789abcdef"),
        ("OPS_TOKEN", "fedcba9876543210"),
        ("WORKERS_TOKEN", "0123456789fedcba"),
    ]);
    let config = Loader::new().file("f", examples).env(variables).load().unwrap().config;
    assert_eq!(
        (config.upstreams.len(), config.claims.clients.len(), config.routes.len()),
        (1, 1, 1)
    );
}

#[test]
fn every_layer_can_set_every_setting() {
    for setting in effective() {
        let Some(value) = setting.value else { continue };
        let toml = value.to_string();
        let bare = toml.trim_matches('"');
        let name = format!("TIDEGATE_{}", setting.key.to_uppercase().replace('.', "_"));
        for loader in [
            Loader::new().file("f", format!("{} = {toml}", setting.key)),
            Loader::new().env([(name, bare.to_owned())]),
            Loader::new().flag("--set", &setting.key, bare),
        ] {
            let loaded = loader.load().unwrap();
            assert_eq!(loaded.config, Config::default(), "{}", setting.key);
            let loaded = loaded.origins.iter().find(|other| other.key == setting.key).unwrap();
            assert!(loaded.origin.is_explicit(), "{}", setting.key);
        }
    }
}

#[test]
fn messages_stay_on_one_line_and_passwords_are_masked() {
    let error = only(&format!("role = \"{}\"", "x\\n".repeat(99)));
    let line = error.to_string();
    assert!(line.lines().count() == 1 && line.contains('…') && line.len() < 400, "{line}");
    for (store, shown) in [
        ("tidegate-data", "tidegate-data"),
        ("a:b@c", "a:b@c"),
        ("postgres://host/db", "postgres://host/db"),
        ("postgres://me@host/db?x=a:b@c", "postgres://me@host/db?x=a:b@c"),
        ("postgres://me:secret@host:5432/db", "postgres://me:***@host:5432/db"),
        ("postgres://me:s@cr:et@host/db", "postgres://me:***@host/db"),
    ] {
        let config = Config::from_toml(&format!("ingest.store = \"{store}\"")).unwrap();
        assert_eq!(masked(&config.ingest.store), shown);
    }
}
