use tidegate_server::config::Config;

fn is_filter(text: &str) -> bool {
    Config::from_toml(&format!("log.level = \"{text}\"")).is_ok()
}

#[test]
fn levels_and_directives_are_filters() {
    for text in [
        "info",
        "WARN",
        "off",
        "info,hyper=warn",
        "warn, tidegate::proxy=trace",
        "[span{a=b,c}]=debug",
    ] {
        assert!(is_filter(text), "{text}");
    }
}

#[test]
fn a_mistyped_level_is_not_taken_for_a_target() {
    for text in ["inof", "info,", "hyper", "hyper=loud", "=info", "info hyper=warn"] {
        assert!(!is_filter(text), "{text}");
    }
}
