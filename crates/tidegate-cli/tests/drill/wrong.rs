//! The list of scenarios, and invalid flags.

use super::program::{drill, file};
use super::upstreams::TINY;
use std::net::TcpListener;

#[test]
fn the_list_explains_each_scenario_in_a_line() {
    let said = drill(&["--list"]);
    assert_eq!(said.code, Some(0), "{}", said.error);
    let line = said.out.lines().find(|line| line.starts_with("load_sweep ")).unwrap();
    assert!(line.contains("gateway") && line.contains("140") && line.contains("44"), "{line}");
    assert!(line.contains("goodput must not fall"), "{line}");
}

#[test]
fn a_name_that_there_is_not_is_told_what_there_is() {
    drill(&["lod_sweep"]).failed_with(2, &["\"lod_sweep\"", "Did you mean load_sweep?", "--list"]);
    drill(&["nowhere.toml"]).failed_with(2, &["can't read nowhere.toml"]);
    drill(&[]).failed_with(2, &["SCENARIO"]);
}

#[test]
fn a_wrong_file_is_told_where_and_what() {
    let typo = file("typo", &TINY.replace("duration_s", "duration_ms"));
    drill(&[typo.to_str().unwrap()]).failed_with(2, &["unknown field `duration_ms`"]);
    let wrong = TINY.replace("slots = 4", "slots = 0").replace("share = 0.5", "share = -1");
    let wrong = file("wrong", &wrong);
    drill(&[wrong.to_str().unwrap()]).failed_with(2, &["upstreams.slots: is 0", "share: is -1"]);
    let long = file("long-queue", &TINY.replace("[gateway]", "[gateway]\nqueue = 2000000"));
    drill(&[long.to_str().unwrap()]).failed_with(2, &["gateway.queue: is 2000000, allowed are 0"]);
}

#[test]
fn a_target_that_is_not_there_is_said_to_be() {
    // Bound and given back: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let tiny = file("nobody", TINY);
    let said = drill(&[tiny.to_str().unwrap(), "--target", &url]);
    said.failed_with(1, &["can't reach", &url, "refused"]);
}
