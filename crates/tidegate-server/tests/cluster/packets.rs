use crate::bed::{Member, keys, members, shared, within};
use crate::relay::Sides;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;
use tidegate_server::cluster::{MemberState, PacketCounts};

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn forged_replayed_and_garbage_packets_are_counted_and_change_nothing() {
    let _machine = shared();
    let sides = Sides::default();
    let [a, b, c] = members(&sides);
    let relay = b.relay.as_ref().unwrap();
    within("packets are overheard", LIMIT, || relay.heard().len() >= 20);
    let overheard = relay.heard();
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |packet: &[u8]| {
        attacker.send_to(packet, b.socket).unwrap();
        // No faster than the receiver reads.
        sleep(Duration::from_millis(1));
    };
    let counted = |count: fn(&PacketCounts) -> u64| {
        within("it is counted", LIMIT, || count(&b.membership.counts()) >= 20);
    };
    let changed = |packet: &[u8], at: usize, by: u8| {
        let mut changed = packet.to_vec();
        let at = if at < changed.len() { at } else { changed.len() - 1 };
        changed[at] ^= by;
        changed
    };
    let heard = overheard.iter().take(20);
    let before = b.membership.members();
    heard.clone().for_each(|packet| send(packet));
    counted(|counts| counts.replayed);
    heard.clone().for_each(|packet| send(&changed(packet, usize::MAX, 1)));
    counted(|counts| counts.forged);
    heard.clone().for_each(|packet| send(&changed(packet, 4, 7)));
    counted(|counts| counts.unknown_key);
    heard.clone().for_each(|packet| send(&changed(packet, 0, 0x40)));
    counted(|counts| counts.version);
    (0..20).for_each(|length| send(&vec![b'x'; length]));
    counted(|counts| counts.garbage);
    // A counter from before, and one from after the newest: neither opens.
    heard.clone().for_each(|packet| send(&changed(packet, 20, 0x80)));
    within("those too", LIMIT, || b.membership.counts().forged >= 40);
    sleep(Duration::from_secs(3));
    let names = |members: &[tidegate_server::cluster::MemberView]| -> Vec<_> {
        members.iter().map(|it| (it.node.clone(), it.generation, it.state)).collect()
    };
    assert_eq!(names(&b.membership.members()), names(&before));
    for member in [&a, &b, &c] {
        assert!(member.sees(&[&a, &b, &c]));
        let counts = member.membership.counts();
        assert_eq!((counts.suspicions, counts.malformed), (0, 0), "{}: {counts:?}", member.name);
    }
}

#[test]
fn keys_rotate_while_members_talk_and_a_foreign_key_gets_nowhere() {
    let _machine = shared();
    let sides = Sides::default();
    // In the middle of a rotation: both know both keys, and each seals with another.
    let a = Member::start("a", &[], &sides, keys(&[1, 2]));
    let b = Member::start("b", &[&a], &sides, keys(&[2, 1]));
    within("both talk", LIMIT, || a.sees(&[&a, &b]) && b.sees(&[&a, &b]));
    let foreign = Member::start("foreign", &[&a, &b], &sides, keys(&[3]));
    within("it is refused", LIMIT, || {
        [&a, &b].iter().all(|member| member.membership.counts().unknown_key >= 2)
    });
    assert!(foreign.sees(&[&foreign]));
    for member in [&a, &b] {
        assert_eq!(member.state_of("foreign"), None);
        assert_eq!(member.state_of("a"), Some(MemberState::Alive));
        let counts = member.membership.counts();
        assert_eq!((counts.forged, counts.replayed, counts.suspicions), (0, 0, 0), "{counts:?}");
    }
}
