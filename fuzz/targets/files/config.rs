use tidegate_server::config::{Effective, Loaded, Loader, show_json, show_text};

/// Loads a configuration. Every error is one line; what is loaded loads again from the values that are shown.
pub fn run(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let loaded = match Loader::new().file("f.toml", text.clone()).load() {
        Ok(loaded) => loaded,
        Err(errors) => {
            assert!(!errors.is_empty());
            assert_eq!(errors.to_string().lines().count(), errors.len() + 1, "{errors}");
            return false;
        }
    };
    let again = Loader::new().file("f.toml", text).load().expect("as before");
    assert_eq!(again.origins, loaded.origins);
    let shown = show_text(&loaded.origins);
    assert_eq!(
        show_json(&loaded.origins).as_object().map(|all| all.len()),
        Some(loaded.origins.len())
    );
    assert_eq!(shown.lines().count(), loaded.origins.len(), "{shown}");
    check_flags(&loaded);
    true
}

/// The shown values are values: those that the file sets are the same as flags. Others may differ, as those that
/// follow from the upstreams do, which are no flags here.
fn check_flags(loaded: &Loaded) {
    let mut loader = Loader::new();
    let given = |setting: &&Effective| setting.origin.is_explicit() && is_flag(setting);
    for setting in loaded.origins.iter().filter(given) {
        let Some(value) = &setting.value else { continue };
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        loader = loader.flag("--set", &*setting.key, value);
    }
    let again = match loader.load() {
        Ok(again) => again,
        Err(errors) => panic!("{errors}"),
    };
    let values = |loaded: &Loaded| -> Vec<_> {
        let settings = loaded.origins.iter().filter(given);
        settings.map(|setting| (setting.key.clone(), setting.value.clone())).collect()
    };
    assert_eq!(values(&again), values(loaded));
}

/// Returns true for settings that are no entry of a list, which flags don't set one by one.
fn is_flag(setting: &Effective) -> bool {
    !setting.key.contains('[')
}
