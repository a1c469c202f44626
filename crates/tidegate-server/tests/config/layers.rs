use crate::support::{about, env, mistakes, only};
use std::time::Duration;
use tidegate::{MessagePriority, Role, Sharing};
use tidegate_server::config::{
    Anonymous, Config, Loader, Origin, SETTINGS, Scheme, init_file, show_json, show_text,
};

#[test]
fn nothing_said_is_the_gate_preset() {
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
fn everything_can_be_said_in_a_file() {
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

const FULL_OF_MISTAKES: &str = r#"
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
    ("listen.admin_address", "tg.toml:14", "0.0.0.0:8001", "tunnel", None),
    ("listen.tls_key", "tg.toml:15", "nothing", "beside listen.tls_cert", None),
    ("log.level", "tg.toml:17", "\"inof\"", "error, warn, info", Some("\"info\"")),
    ("client[1].token", "tg.toml:20", "7 characters", "16 … 512", None),
    ("client[1].max_priority", "tg.toml:21", "\"critical\"", "control plane alone", None),
    ("client[2].name", "tg.toml:23", "\"b c\"", "1 … 64 letters", None),
    ("client[2].share", "tg.toml:24", "1.5", "0.0 … 1.0", None),
    ("client[2].token", "tg.toml:22", "neither", "one of token", None),
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
fn every_mistake_is_listed_at_once() {
    let mistakes = Loader::new()
        .file("tg.toml", FULL_OF_MISTAKES)
        .env(env(&[
            ("TIDEGATE_ADMISSION_LOW_LIMT", "5"),
            ("TIDEGATE_PROXY_CONNECT_TIMEOUT_MS", "2s"),
            ("TIDEGATE_TEST_ANYTHING", "1"),
            ("TIDEGATE_CONFIG", "tg.toml"),
            ("HOME", "/"),
        ]))
        .flag("admission.retry_after_min_ms", "0")
        .flag("proxy.idle_timout_ms", "5")
        .flag("client[9].token", "very-secret-thing")
        .load()
        .unwrap_err();

    for (field, origin, given, allowed, suggestion) in EXPECTED {
        let mistake = about(&mistakes, field);
        assert!(mistake.origin.to_string().contains(origin), "{mistake}");
        assert!(mistake.given.contains(given), "{mistake}");
        assert!(mistake.allowed.contains(allowed), "{mistake}");
        assert_eq!(mistake.suggestion.as_deref(), *suggestion, "{mistake}");
    }
    assert_eq!(mistakes.len(), EXPECTED.len(), "{mistakes}");
    let text = mistakes.to_string();
    assert_eq!(text.lines().count(), mistakes.len() + 1, "a heading, then one line each: {text}");
    assert!(text.starts_with(&format!("{} mistakes", mistakes.len())));
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
fn later_layers_win_and_show_says_so() {
    let loader = Loader::new()
        .file("tg.toml", LAYERED)
        .env(env(&[
            ("TIDEGATE_ADMISSION_LOW_LIMIT", "2"),
            ("TIDEGATE_ADMISSION_NORMAL_LIMIT", "2"),
            ("TIDEGATE_UPSTREAM", "http://env:1, http://env:2"),
        ]))
        .flag_typed("--normal-limit", "admission.normal_limit", "3");
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

    let by_flag = loader.flag("upstream", "h2c://flag:1").load().unwrap();
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
    let mistakes = Loader::new().env(other).load().unwrap_err();
    let line = about(&mistakes, "admission.low_limit").to_string();
    for part in ["PENDING_RESPONSE_LOW_LIMIT", "TIDEGATE_ADMISSION_LOW_LIMIT", "\"7\"", "\"8\""] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn limits_must_fit_together() {
    let mistake = only("[admission]\nglobal_limit = 100\nhigh_limit = 101");
    assert_eq!((mistake.field.as_str(), mistake.given.as_str()), ("admission.high_limit", "101"));
    assert!(mistake.allowed.contains("0 … 100"), "{mistake}");
    assert!(Config::from_toml("[admission]\nglobal_limit = 100\nhigh_limit = 100").is_ok());
    assert!(Config::from_toml("[admission]\nglobal_limit = 1").is_ok(), "presets are clamped");

    let mistake = only("[admission]\nglobal_limit = 10\ncritical_reserve = 10");
    assert!(mistake.allowed.contains("0 … 9"), "{mistake}");
    let mistake = only("[admission]\nretry_after_min_ms = 2000\nretry_after_max_ms = 1000");
    assert_eq!(mistake.field, "admission.retry_after_min_ms");
}

#[test]
fn an_open_port_needs_a_token() {
    let decided = "proxy.forwarded = \"replace\"\nclaims.anonymous = \"low\"";
    let mistake = only(&format!("listen.address = \"0.0.0.0:8000\"\n{decided}"));
    assert!(mistake.allowed.contains("add a [[client]] with a token, or listen on 127.0.0.1"));
    let client = "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"";
    let open = "listen.address = \"[::]:80\"";
    assert!(Config::from_toml(&format!("{open}\n{decided}\n{client}")).is_ok());
    let undecided = mistakes(&format!("{open}\n{client}")).to_string();
    assert!(undecided.contains("claims.anonymous (default): given nothing"), "{undecided}");
    assert!(undecided.contains("proxy.forwarded (default): given nothing"), "{undecided}");
    let nobody = only("claims.anonymous = \"refuse\"");
    assert!(nobody.allowed.contains("nobody could get in"), "{nobody}");
    for loopback in ["127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(Config::from_toml(&format!("listen.address = \"{loopback}\"")).is_ok());
    }
    let admin = format!("listen.admin_address = \"10.0.0.1:1\"\n{client}");
    assert!(only(&admin).allowed.contains("tunnel"), "a token does not open administration");
}

#[test]
fn two_listeners_need_two_ports() {
    let mistake = only("listen.address = \"127.0.0.1:8001\"");
    assert_eq!(mistake.field, "listen.address");
    assert!(mistake.allowed.contains("listen.admin_address"), "{mistake}");
    let same = "[listen]\naddress = \"127.0.0.1:0\"\nadmin_address = \"127.0.0.1:0\"";
    assert!(Config::from_toml(same).is_ok(), "port 0 is whatever is free");
}

#[test]
fn tokens_stay_secret() {
    let secret = "correct-horse-battery";
    let file = format!("[[client]]\nname = \"a\"\ntoken = \"{secret}\"");
    let loaded = Loader::new().file("tg.toml", &file).load().unwrap();
    assert_eq!(loaded.config.claims.clients[0].token, secret);
    for shown in [
        format!("{loaded:?}"),
        show_text(&loaded.origins),
        show_json(&loaded.origins).to_string(),
        mistakes(&format!("{file}\n[[client]]\nname = \"b\"\ntoken = \"{secret}\"")).to_string(),
        mistakes(&format!("[[client]]\nname = \"a\"\ntokn = \"{secret}\"")).to_string(),
        mistakes(&format!("[[client]]\nname = \"a\"\ntoken = \"{secret} \"")).to_string(),
        mistakes(&format!("{file} \"")).to_string(),
        mistakes(&format!("token = \"{secret}\"")).to_string(),
        mistakes(&format!("[[upstream]]\nurl = \"http://me:{secret}@h\"")).to_string(),
        mistakes(&format!("[[upstream]]\nurl = \"me:{secret}@h\"")).to_string(),
    ] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_token_can_come_from_the_environment() {
    let file = "[[client]]\nname = \"a\"\ntoken_env = \"TIDEGATE_BATCH_TOKEN\"";
    let load = |pairs: &[(&str, &str)]| Loader::new().file("f", file).env(env(pairs)).load();
    let loaded = load(&[("TIDEGATE_BATCH_TOKEN", "0123456789abcdef")]).unwrap();
    assert_eq!(loaded.config.claims.clients[0].token, "0123456789abcdef");

    let unset = load(&[]).unwrap_err();
    assert!(about(&unset, "client[1].token_env").given.contains("not set"), "{unset}");
    let weak = load(&[("TIDEGATE_BATCH_TOKEN", "hunter2")]).unwrap_err();
    assert!(weak.to_string().contains("7 characters") && !weak.to_string().contains("hunter2"));
    let both = format!("{file}\ntoken = \"0123456789abcdef\"");
    assert!(mistakes(&both).to_string().contains("token and token_env"));
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
fn routes_say_what_is_missing() {
    let route = |lines: &str| mistakes(&format!("[[route]]\n{lines}"));
    let all = route("header_value = \"x\"");
    assert!(about(&all, "route[1].header_value").allowed.contains("header"), "{all}");
    assert!(about(&all, "route[1].priority").allowed.contains("a model"), "{all}");
    let all =
        route("priority = \"low\"\npath_prefix = \"v1\"\nmethod = \"post\"\nheader = \"a b\"");
    assert_eq!(all.len(), 3, "{all}");
}

#[test]
fn shapes_that_are_not_the_schema_s_are_mistakes() {
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
fn broken_toml_is_one_mistake_with_its_place() {
    let mistake = only("role = \"gate\"\n[admission\nhigh_limit = 5\n");
    assert!(mistake.given.contains("line 2, column 11"), "{mistake}");
    assert_eq!(mistake.origin, Origin::File { path: "<toml>".to_owned(), line: 2 });
    assert_eq!(mistake.to_string().lines().count(), 1);
}

#[test]
fn the_initial_file_says_exactly_the_defaults() {
    let file = init_file();
    assert_eq!(Config::from_toml(&file).unwrap(), Config::default());

    // And so it does with every default taken out of its comment.
    let is_default = |line: &str| {
        let key = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
        key.is_some_and(|(key, _)| SETTINGS.iter().any(|field| field.name() == key))
    };
    let (settings, lists) = file.split_at(file.find("# What requests are passed on to").unwrap());
    // What is not set by default stands there as an example.
    let unset: Vec<_> = SETTINGS.iter().map(|field| field.name()).collect();
    let unset = |line: &str| {
        let key = line.strip_prefix('#').and_then(|line| line.split_once(" = "));
        let key = key.map(|(key, _)| key).filter(|key| unset.contains(key));
        let shown = Loader::new().load().unwrap().origins;
        key.is_some_and(|key| {
            shown
                .iter()
                .any(|setting| setting.key.ends_with(&format!(".{key}")) && setting.toml.is_none())
        })
    };
    let said: String = settings
        .lines()
        .filter(|line| !unset(line))
        .map(|line| line.strip_prefix('#').filter(|_| is_default(line)).unwrap_or(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    let loaded = Loader::new().file("f", said).load().unwrap();
    assert_eq!(loaded.config, Config::default());
    let explicit = loaded.origins.iter().filter(|setting| setting.origin.is_explicit()).count();
    let unset = loaded.origins.iter().filter(|setting| setting.toml.is_none()).count();
    assert_eq!(explicit + unset, SETTINGS.len());

    // The examples of lists are right as well.
    let examples: String = lists
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with("[[") || (line.contains(" = ") && !line.starts_with(' ')))
        .flat_map(|line| [line, "\n"])
        .collect();
    let variables = env(&[("BATCH_TOKEN", "0123456789abcdef")]);
    let config = Loader::new().file("f", examples).env(variables).load().unwrap().config;
    assert_eq!(
        (config.upstreams.len(), config.claims.clients.len(), config.routes.len()),
        (1, 1, 1)
    );
}

#[test]
fn every_setting_can_be_said_in_every_layer() {
    for setting in Loader::new().load().unwrap().origins {
        let Some(toml) = setting.toml else { continue };
        let bare = toml.trim_matches('"');
        let name = format!("TIDEGATE_{}", setting.key.to_uppercase().replace('.', "_"));
        for loader in [
            Loader::new().file("f", format!("{} = {toml}", setting.key)),
            Loader::new().env([(name, bare.to_owned())]),
            Loader::new().flag(&setting.key, bare),
        ] {
            let loaded = loader.load().unwrap();
            assert_eq!(loaded.config, Config::default(), "{}", setting.key);
            let said = loaded.origins.iter().find(|said| said.key == setting.key).unwrap();
            assert!(said.origin.is_explicit(), "{}", setting.key);
        }
    }
}
