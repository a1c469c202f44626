//! The state folder: told, by the service manager, or the user's.

use std::path::Path;
use tidegate_server::config::{Config, Loader};

/// The configuration of an environment and a file.
fn loaded(env: &[(&str, &str)], file: &str) -> Config {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let loader = Loader::new().env(env).file("tidegate.toml", file);
    loader.load().unwrap_or_else(|errors| panic!("{errors}")).config
}

#[track_caller]
fn is_at(config: &Config, folder: &str) {
    assert_eq!(config.state_folder.as_deref(), Some(Path::new(folder)));
    assert_eq!(config.ingest.store, format!("{folder}/usage"));
    assert_eq!(config.tasks.store, format!("{folder}/tasks"));
}

#[test]
fn the_service_manager_wins_over_the_user_and_a_setting_over_both() {
    let home = ("HOME", "/home/ann");
    let user = ("XDG_STATE_HOME", "/home/ann/state");
    let service = ("STATE_DIRECTORY", "/var/lib/tidegate:/var/lib/other");
    is_at(&loaded(&[home], ""), "/home/ann/.local/state/tidegate");
    is_at(&loaded(&[home, user], ""), "/home/ann/state/tidegate");
    is_at(&loaded(&[home, user, service], ""), "/var/lib/tidegate");
    is_at(&loaded(&[home, user, service], "state_folder = \"/srv/state\""), "/srv/state");
    let variable = ("TIDEGATE_STATE_FOLDER", "/srv/other");
    is_at(&loaded(&[service, variable], "state_folder = \"/srv/state\""), "/srv/other");
}

#[test]
fn a_store_with_a_place_of_its_own_stays_there() {
    let config = loaded(&[("STATE_DIRECTORY", "/var/lib/tidegate")], "ingest.store = \"mine\"");
    assert_eq!(config.ingest.store, "mine");
    assert_eq!(config.tasks.store, "/var/lib/tidegate/tasks");
}

#[test]
fn without_an_absolute_folder_the_stores_are_in_the_working_directory() {
    for env in [&[][..], &[("HOME", "")], &[("XDG_STATE_HOME", "state"), ("STATE_DIRECTORY", "")]] {
        let config = loaded(env, "");
        assert_eq!(config.state_folder, None, "{env:?}");
        assert_eq!(
            (&*config.ingest.store, &*config.tasks.store),
            ("tidegate-data", "tidegate-tasks")
        );
    }
}

#[test]
fn a_state_folder_asks_for_neither_ingestion_nor_tasks() {
    let file = "state_folder = \"/srv/state\"\n[[upstream]]\nurl = \"http://127.0.0.1:9001\"";
    let config = loaded(&[], file);
    assert!(!config.ingest.enabled && !config.tasks.enabled);
}

#[test]
fn the_origin_of_a_folder_is_shown() {
    let env = [("XDG_STATE_HOME".to_owned(), "/state".to_owned())];
    let origins = Loader::new().env(env).load().unwrap().origins;
    for key in ["state_folder", "ingest.store", "tasks.store"] {
        let setting = origins.iter().find(|setting| setting.key == key).unwrap();
        assert_eq!(setting.origin.to_string(), "env XDG_STATE_HOME", "{key}");
    }
}
