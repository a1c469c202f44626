//! Members on real sockets and threads, each behind a relay.

use crate::folder::TempFolder;
use crate::relay::{Relay, Sides};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate::membership::MemberRole;
use tidegate_server::cluster::{
    ClusterFolder, Facts, KEY_BYTES, Keyring, MemberState, MemberView, Membership,
    MembershipSettings, NodeRecord,
};

/// The test that burns all cores has the machine to itself.
pub static MACHINE: RwLock<()> = RwLock::new(());

pub fn shared() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

pub struct Member {
    pub name: String,
    /// Address that it listens on, and that its packets come from.
    pub socket: SocketAddr,
    pub relay: Option<Relay>,
    pub membership: Membership,
    /// Error of a node whose name belongs to another.
    pub refused: Receiver<String>,
    pub folder: TempFolder,
}

pub fn keys(ids: &[u32]) -> Keyring {
    Keyring::new(ids.iter().map(|id| (*id, [*id as u8; KEY_BYTES])).collect()).unwrap()
}

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Member {
    pub fn start(name: &str, seeds: &[&Member], sides: &Sides, keyring: Keyring) -> Self {
        let folder = TempFolder::new("member");
        Self::start_in(name, seeds, sides, keyring, folder)
    }

    pub fn start_in(
        name: &str,
        seeds: &[&Member],
        sides: &Sides,
        keyring: Keyring,
        folder: TempFolder,
    ) -> Self {
        let socket = free_address();
        sides.set(socket, 0);
        let relay = Relay::start(socket, sides.clone());
        let (udp, listen) = (relay.advertised, Some(socket));
        Self::start_at(name, seeds, keyring, folder, (udp, listen, Some(relay)))
    }

    /// A member that others reach without a relay.
    pub fn start_direct(name: &str, seeds: &[&Member]) -> Self {
        let (folder, socket) = (TempFolder::new("member"), free_address());
        Self::start_at(name, seeds, keys(&[1]), folder, (socket, None, None))
    }

    fn start_at(
        name: &str,
        seeds: &[&Member],
        keyring: Keyring,
        folder: TempFolder,
        (udp, listen, relay): (SocketAddr, Option<SocketAddr>, Option<Relay>),
    ) -> Self {
        let cluster = ClusterFolder::of(folder.path(), MemberRole::Manager);
        std::fs::create_dir_all(cluster.path()).unwrap();
        let node = NodeRecord {
            version: ClusterFolder::VERSION,
            cell: "test".to_owned(),
            role: MemberRole::Manager,
            node: name.to_owned(),
            host: "127.0.0.1".to_owned(),
            udp,
            listen,
            seeds: seeds.iter().map(|seed| seed.membership.address().to_string()).collect(),
            manager: None,
        };
        let (tell, refused) = channel();
        let membership = Membership::start(MembershipSettings {
            node,
            folder: cluster,
            keyring,
            facts: Facts::default(),
            on_refused: Box::new(move |error| tell.send(error).unwrap()),
        });
        let (name, socket) = (name.to_owned(), listen.unwrap_or(udp));
        Self { name, socket, relay, membership: membership.unwrap(), refused, folder }
    }

    pub fn state_of(&self, name: &str) -> Option<MemberState> {
        let members = self.membership.members();
        members.iter().find(|member| member.node == name).map(|member| member.state)
    }

    /// True if it sees exactly these as alive, itself among them.
    pub fn sees(&self, names: &[&Member]) -> bool {
        let members = self.membership.members();
        let alive: Vec<&str> = members
            .iter()
            .filter(|member| member.state == MemberState::Alive)
            .map(|member| member.node.as_str())
            .collect();
        let mut expected: Vec<&str> = names.iter().map(|member| member.name.as_str()).collect();
        expected.sort_unstable();
        alive == expected
    }

    /// Members in its view, for messages of the test.
    pub fn view(&self) -> String {
        let members = self.membership.members();
        let one = |it: &MemberView| {
            format!("{} {} {:?} {:?}", it.node, it.generation, it.state, it.reason)
        };
        let known: Vec<String> = members.iter().map(one).collect();
        format!("{} sees {}; {:?}", self.name, known.join(", "), self.membership.counts())
    }

    /// Stops it without a word to the others, and keeps its folder.
    pub fn crash(self, sides: &Sides) -> TempFolder {
        sides.set(self.socket, u32::MAX);
        let Self { membership, folder, relay, .. } = self;
        drop(relay);
        drop(membership);
        folder
    }
}

/// Members that all know each other.
pub fn members<const N: usize>(sides: &Sides) -> [Member; N] {
    let mut all: Vec<Member> = Vec::new();
    for number in 0..N {
        let seeds: Vec<&Member> = all.first().into_iter().collect();
        let member = Member::start(&format!("n{number}"), &seeds, sides, keys(&[1]));
        all.push(member);
    }
    let everybody: Vec<&Member> = all.iter().collect();
    within("all know all", Duration::from_secs(10), || {
        everybody.iter().all(|member| member.sees(&everybody))
    });
    all.try_into().unwrap_or_else(|_| unreachable!())
}

/// Waits for something, and returns after how long it was so.
#[track_caller]
pub fn within(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(20));
    }
    began.elapsed()
}
