//! Tokens and keys in the configuration.

use crate::support::{about, env, errors, only};
use tidegate_server::config::{ConfigErrors, Loader, TokenDigest, show_text};

const TOKEN: &str = "correct-horse-battery";

fn load(file: &str, mode: u32) -> Result<tidegate_server::config::Loaded, ConfigErrors> {
    Loader::new().file("tg.toml", file).file_mode(mode).load()
}

#[test]
fn a_digest_stands_for_its_token() {
    let digest = TokenDigest::of(TOKEN.as_bytes());
    let file = format!("[[client]]\nname = \"a\"\ntoken_sha256 = \"{}\"", digest.to_hex());
    let loaded = load(&file, 0o100_644).unwrap();
    assert_eq!(loaded.config.claims.clients[0].token, Some(digest));
    assert!(!show_text(&loaded.origins).contains(&digest.to_hex()));
    let same = format!("{file}\n[[client]]\nname = \"b\"\ntoken = \"{TOKEN}\"");
    assert!(only(&same).allowed.contains("client[1] has this one"));
    // A token in the place of its digest is not repeated.
    let error = only(&file.replace(&digest.to_hex(), TOKEN));
    assert!(error.allowed.contains("64 hexadecimal") && !error.to_string().contains(TOKEN));
    assert_eq!(error.field, "client[1].token_sha256");
    let both = format!("{file}\ntoken = \"{TOKEN}\"\ntoken_env = \"T\"");
    assert_eq!(only(&both).given, "token and token_sha256 and token_env");
}

#[test]
fn a_file_with_tokens_that_everyone_can_read_is_refused() {
    let plain = format!("[[client]]\nname = \"a\"\ntoken = \"{TOKEN}\"\n");
    for mode in [0o100_600, 0o100_640, 0o100_660] {
        assert!(load(&plain, mode).is_ok(), "{mode:o}");
    }
    // All that is wrong is said at once.
    let wrong = format!("{plain}max_priority = \"urgent\"\n");
    let errors = load(&wrong, 0o100_644).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors}");
    let error = about(&errors, "client[1].token");
    assert!(error.given.contains("mode 0644"), "{error}");
    assert!(error.allowed.contains("chmod 640 tg.toml"), "{error}");
    assert!(error.origin.to_string().contains("tg.toml:3"), "{error}");
    assert!(!errors.to_string().contains(TOKEN));
    assert!(
        load("[[client]]\nname = \"a\"\ntoken_env = \"T\"", 0o100_644)
            .is_err_and(|errors| { errors.len() == 1 && errors[0].given.contains("not set") })
    );
}

#[test]
fn the_key_of_an_upstream_comes_from_the_environment() {
    let file = "[proxy]\nauthorization = \"replace\"\n[[upstream]]\nurl = \"http://h:1\"\n\
                api_key_env = \"TIDEGATE_UPSTREAM_KEY\"";
    let load = |pairs: &[(&str, &str)]| Loader::new().file("f", file).env(env(pairs)).load();
    let loaded = load(&[("TIDEGATE_UPSTREAM_KEY", "sk-secret\n")]).unwrap();
    assert_eq!(loaded.config.upstreams[0].api_key.as_ref().unwrap().expose(), "sk-secret");
    assert!(!format!("{loaded:?}").contains("sk-secret"));
    let missing = load(&[]).unwrap_err();
    assert!(about(&missing, "upstream[1].api_key_env").given.contains("not set"), "{missing}");
    let spaces = load(&[("TIDEGATE_UPSTREAM_KEY", "sk secret")]).unwrap_err().to_string();
    assert!(spaces.contains("9 characters") && !spaces.contains("sk secret"), "{spaces}");
}

#[test]
fn a_key_that_is_never_sent_is_an_error() {
    let unsent = errors("[[upstream]]\nurl = \"http://h:1\"\napi_key_env = \"PATH_OF_NOTHING\"");
    assert!(unsent.to_string().contains("proxy.authorization = \"replace\""), "{unsent}");
}
