use crate::cluster_node::{Manager, TempNode};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{JoinError, TokenUse};

const HOUR: Duration = Duration::from_secs(3_600);

#[track_caller]
fn reason(refused: Result<TempNode, JoinError>) -> String {
    match refused.err() {
        Some(JoinError::Refused { reason, .. }) => reason,
        Some(error) => format!("{error}"),
        None => "joined".to_owned(),
    }
}

#[test]
fn a_token_works_once_and_the_node_has_all_that_it_needs() {
    let manager = Manager::start();
    let token = manager.token(MemberRole::Worker, TokenUse::Once, HOUR);
    let node = manager.join(&token, MemberRole::Worker, "w1").unwrap();
    let record = node.cluster.node();
    assert_eq!((record.cell.as_str(), record.role), ("main", MemberRole::Worker));
    assert_eq!(record.manager.as_ref().unwrap().clients, manager.clients_url());
    for entry in std::fs::read_dir(node.cluster.folder().path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.path());
    }
    let refused = manager.join(&token, MemberRole::Worker, "w2");
    assert_eq!(reason(refused), "token_used");
}

#[test]
fn a_token_may_work_until_its_time_and_then_no_more() {
    let manager = Manager::start();
    let token = manager.token(MemberRole::Worker, TokenUse::UntilExpiry, HOUR);
    assert!(manager.join(&token, MemberRole::Worker, "w1").is_ok());
    assert!(manager.join(&token, MemberRole::Worker, "w2").is_ok());
    let expired = manager.token(MemberRole::Worker, TokenUse::UntilExpiry, Duration::ZERO);
    assert_eq!(reason(manager.join(&expired, MemberRole::Worker, "w3")), "token_expired");
}

#[test]
fn a_token_is_for_one_role_and_one_cluster() {
    let (manager, other) = (Manager::start(), Manager::start());
    let token = manager.token(MemberRole::Worker, TokenUse::Once, HOUR);
    assert_eq!(reason(manager.join(&token, MemberRole::Manager, "x")), "token_role");
    assert_eq!(reason(manager.join(&token, MemberRole::Gate, "x")), "token_role");
    let mut unknown = token.clone();
    let first = if unknown.starts_with('0') { "1" } else { "0" };
    unknown.replace_range(..1, first);
    assert_eq!(reason(manager.join(&unknown, MemberRole::Worker, "x")), "token_unknown");
    // The secret is not shown to a manager of another authority.
    let elsewhere = reason(other.join(&token, MemberRole::Worker, "x"));
    assert!(elsewhere.contains("is the token of its cluster?"), "{elsewhere}");
    assert_eq!(other.refused(), 0, "it has seen no request");
    // What was refused has not used the token up.
    assert!(manager.join(&token, MemberRole::Worker, "w1").is_ok());
}

#[test]
fn a_name_is_given_once_while_it_lives_and_never_to_another_role() {
    let manager = Manager::start();
    let workers = manager.token(MemberRole::Worker, TokenUse::UntilExpiry, HOUR);
    let gates = manager.token(MemberRole::Gate, TokenUse::UntilExpiry, HOUR);
    let node = manager.join(&workers, MemberRole::Worker, "n1").unwrap();
    assert_eq!(reason(manager.join(&gates, MemberRole::Gate, "n1")), "name_taken");
    assert_eq!(reason(manager.join(&workers, MemberRole::Worker, "manager")), "name_taken");
    let membership = node.cluster.start(|error| panic!("{error}")).unwrap();
    manager.wait_for("n1");
    assert_eq!(reason(manager.join(&workers, MemberRole::Worker, "n1")), "name_taken");
    membership.stop();
    manager.wait_until_gone("n1");
    assert!(manager.join(&workers, MemberRole::Worker, "n1").is_ok(), "installed anew");
}

#[test]
fn a_manager_whose_udp_port_was_taken_before_its_first_start_is_found_at_another() {
    let mut other = None;
    // Another node that was made at the same moment may have it already.
    let manager = Manager::start_after(|udp| other = UdpSocket::bind(udp).ok());
    let node = manager.joined(MemberRole::Worker, "w1");
    let membership = node.cluster.start(|error| panic!("{error}")).unwrap();
    manager.wait_for("w1");
    membership.stop();
    drop(other);
}
