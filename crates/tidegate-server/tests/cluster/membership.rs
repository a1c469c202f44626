use crate::bed::{Member, keys, members, shared, within};
use crate::relay::Sides;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate_server::cluster::MemberState;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_crashed_member_is_known_to_be_down_by_all_within_five_seconds() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b, c, d, e] = members(&sides);
    let gone = e.name.clone();
    let _folder = e.crash(&sides);
    within("all know", s(5), || {
        [&a, &b, &c, &d].iter().all(|member| member.state_of(&gone) == Some(MemberState::Down))
    });
    let members = a.membership.members();
    let down = members.iter().find(|member| member.node == gone).unwrap();
    assert!(down.reason.is_some(), "why is shown");
}

#[test]
fn a_member_that_is_shut_down_has_left_at_once() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b, c] = members(&sides);
    c.membership.stop();
    within("all know", s(1), || {
        [&a, &b].iter().all(|member| member.state_of("n2") == Some(MemberState::Left))
    });
}

/// Cuts five members in two, until a condition holds, and heals.
fn cut_and_heal(until: impl Fn(&Member, &[&str]) -> bool) {
    let sides = Sides::default();
    let all: [Member; 5] = members(&sides);
    let [a, b, c, d, e] = &all;
    [d, e].iter().for_each(|member| sides.set(member.socket, 1));
    within("each side is alone", s(15), || {
        [a, b, c].iter().all(|member| until(member, &["n3", "n4"]))
            && [d, e].iter().all(|member| until(member, &["n0", "n1", "n2"]))
    });
    [d, e].iter().for_each(|member| sides.set(member.socket, 0));
    let everybody: Vec<&Member> = all.iter().collect();
    let began = Instant::now();
    while !all.iter().all(|member| member.sees(&everybody)) {
        let views: Vec<String> = all.iter().map(Member::view).collect();
        assert!(began.elapsed() < s(10), "not one cluster again:\n{}", views.join("\n"));
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_healed_partition_is_one_cluster_within_ten_seconds() {
    let _machine = shared();
    cut_and_heal(|member, others| {
        others.iter().all(|other| member.state_of(other) == Some(MemberState::Down))
    });
}

#[test]
fn a_short_cut_leaves_nobody_suspected() {
    let _machine = shared();
    // It ends while the sides suspect each other: some are declared down after it, and come back.
    cut_and_heal(|member, others| {
        others.iter().all(|other| member.state_of(other) != Some(MemberState::Alive))
    });
}

#[test]
fn a_pair_that_was_cut_finds_itself_again() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b] = members(&sides);
    sides.set(b.socket, 1);
    within("each is alone", s(10), || a.sees(&[&a]) && b.sees(&[&b]));
    sides.set(b.socket, 0);
    within("both are there", s(10), || a.sees(&[&a, &b]) && b.sees(&[&a, &b]));
}

#[test]
fn a_clock_that_was_set_back_an_hour_locks_nobody_out() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b, c] = members(&sides);
    let folder = c.crash(&sides);
    // Its last start was in the hour that is to come again.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let generation = now + 3_600_000;
    let file = folder.path().join("cluster/manager/generation");
    assert!(file.exists(), "the generation was persisted");
    fs::write(&file, generation.to_string()).unwrap();
    let c = Member::start_in("n2", &[&a], &sides, keys(&[1]), folder);
    within("it is back", s(5), || {
        let known = |member: &Member| {
            let members = member.membership.members();
            members.iter().any(|it| it.node == "n2" && it.generation > generation)
        };
        known(&a) && known(&b) && c.state_of("n0") == Some(MemberState::Alive)
    });
}

/// A holder of the UDP key can claim any name with any generation. It must not end a node that runs by that.
#[test]
fn a_node_that_has_been_up_for_long_stays_although_another_claims_its_name() {
    let _machine = shared();
    let sides = Sides::default();
    let [a] = members(&sides);
    let folder = Member::start("n1", &[], &sides, keys(&[1])).crash(&sides);
    // So that the claim of the one that starts later is the earlier one.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let file = folder.path().join("cluster/manager/generation");
    fs::write(&file, (now + 3_600_000).to_string()).unwrap();
    let b = Member::start_in("n1", &[&a], &sides, keys(&[1]), folder);
    // A claim takes 10 s, and counts as that of a copied folder in the first 30 s.
    sleep(s(25));
    let _claims = Member::start("n1", &[&a], &sides, keys(&[1]));
    within("it is counted", s(60), || b.membership.counts().names_contested == 1);
    assert!(b.refused.try_recv().is_err(), "it goes on");
}

#[test]
fn the_second_node_of_a_name_is_refused_and_the_first_one_stays() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b] = members(&sides);
    let second = Member::start("n1", &[&a], &sides, keys(&[1]));
    let error = second.refused.recv_timeout(s(30)).unwrap();
    assert!(error.contains("a node named n1 is up at") && error.contains("--node"), "{error}");
    assert!(b.refused.try_recv().is_err(), "it was there before");
    drop(second);
    let began = Instant::now();
    while began.elapsed() < s(3) {
        assert_eq!(a.state_of("n1"), Some(MemberState::Alive));
        sleep(Duration::from_millis(50));
    }
}
