//! Keys of earlier versions: the error says what took their place.

use crate::support::{effective, env, only};
use tidegate_server::config::{Config, Loader};

const RENAMED: [(&str, &str, &str); 10] = [
    ("outbox", "concurrency", "routing.limit, or limit of an [[upstream]]"),
    ("outbox", "max_destinations", "routing.upstreams_max"),
    ("outbox", "queue_size", "queue.size"),
    ("outbox", "overflow_size", "queue.overflow_size"),
    ("outbox", "wait_max_ms", "queue.wait_max_ms"),
    ("outbox", "share", "routing.upstream_share"),
    ("routing", "load", "routing.load_source"),
    ("tasks", "ledger", "tasks.slot_ledger"),
    ("routing", "low_share", "nothing: the queue serves by priority"),
    ("routing", "normal_share", "nothing: the queue serves by priority"),
];

#[test]
fn an_old_key_is_refused_with_the_key_that_took_its_place() {
    let keys: Vec<_> = effective().into_iter().map(|setting| setting.key).collect();
    for (section, key, new) in RENAMED {
        let error = only(&format!("[{section}]\n{key} = 1\n"));
        assert_eq!((error.field, &*error.allowed), (format!("{section}.{key}"), new));
        assert_eq!(error.suggestion, None, "{key}");
        let successor = new.split([',', ':']).next().unwrap_or_default();
        assert!(successor == "nothing" || keys.iter().any(|key| key == successor), "{new}");
    }
}

#[test]
fn every_old_key_is_reported_at_its_line_with_the_unknown_ones() {
    let text = "[outbox]\nconcurrency = 4\nqeue_size = 1\n[routing]\nlow_share = 0.9\n";
    let errors = Config::from_toml(text).unwrap_err().to_string();
    let lines: Vec<_> = errors.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines.len(), 3, "{errors}");
    let [concurrency, unknown, share] = [lines[0], lines[1], lines[2]];
    assert!(
        concurrency.contains("given a key that was renamed; allowed: routing.limit"),
        "{errors}"
    );
    assert!(
        unknown.starts_with("outbox.qeue_size") && unknown.contains("an unknown key"),
        "{errors}"
    );
    assert!(share.contains("given a key that is gone; allowed: nothing"), "{errors}");
}

#[test]
fn an_old_variable_and_an_old_flag_are_refused_the_same_way() {
    let from_env = Loader::new().env(env(&[("TIDEGATE_OUTBOX_CONCURRENCY", "4")]));
    let from_flag = Loader::new().flag("--set", "outbox.concurrency", "4");
    for loader in [from_env, from_flag] {
        let errors = loader.load().unwrap_err();
        assert_eq!((errors.len(), &*errors[0].field), (1, "outbox.concurrency"), "{errors}");
        assert!(errors[0].to_string().contains("allowed: routing.limit"), "{errors}");
    }
}
