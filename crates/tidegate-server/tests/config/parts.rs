//! Ingestion and tasks behind a gateway to upstreams: off unless the configuration asks for them.

use tidegate_server::config::Loader;

const UPSTREAM: &str = "[[upstream]]\nurl = \"http://127.0.0.1:9001\"\n";

/// Ingestion and tasks of a file, an environment and flags: on or off.
fn parts(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> (bool, bool) {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let mut loader = Loader::new().file("tidegate.toml", file).env(env);
    for (key, value) in flags {
        loader = loader.flag("--flag", *key, *value);
    }
    let config = loader.load().unwrap_or_else(|errors| panic!("{errors}")).config;
    (config.ingest.enabled, config.tasks.enabled)
}

#[test]
fn without_upstreams_both_are_on() {
    assert_eq!(parts("", &[], &[]), (true, true));
    assert_eq!(parts("tasks.enabled = false", &[], &[]), (true, false));
}

#[test]
fn with_an_upstream_of_any_layer_both_are_off() {
    assert_eq!(parts(UPSTREAM, &[], &[]), (false, false));
    let url = "http://127.0.0.1:9001";
    assert_eq!(parts("", &[("TIDEGATE_UPSTREAM", url)], &[]), (false, false));
    assert_eq!(parts("", &[], &[("upstream", url)]), (false, false));
}

#[test]
fn each_is_on_again_by_its_switch_or_any_setting_of_its_own() {
    let file = |rest: &str| parts(&format!("{rest}\n{UPSTREAM}"), &[], &[]);
    assert_eq!(file("ingest.enabled = true"), (true, false));
    assert_eq!(file("[tasks]\nenabled = true"), (false, true));
    assert_eq!(file("[ingest]\ntenant_tag = \"team\""), (true, false));
    assert_eq!(file("[tasks]\nslots = 2"), (false, true));
    assert_eq!(file("[[executor]]\nurl = \"http://127.0.0.1:8083\""), (false, true));
    assert_eq!(file("[[runtime]]\nname = \"node\"\ncommand = \"node\""), (false, true));
    assert_eq!(file("[ingest]\n[tasks]"), (false, false), "an empty section asks for nothing");
    assert_eq!(file("[tasks]\nenabled = false\nslots = 2"), (false, false));
    let env = [("TIDEGATE_TASKS_ENABLED", "true")];
    assert_eq!(parts(UPSTREAM, &env, &[]), (false, true));
    assert_eq!(parts(UPSTREAM, &env, &[("tasks.enabled", "false")]), (false, false));
    assert_eq!(parts(UPSTREAM, &[], &[("ingest.store", "usage")]), (true, false));
}
