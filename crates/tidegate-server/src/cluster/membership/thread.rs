use super::counts::{MembershipCounts, PacketCounts};
use super::driver::{Driver, Step};
use super::error::MembershipError;
use super::keyring::Keyring;
use super::member_id::MemberId;
use super::notes::{DrainNote, Facts, Note, SharedNotes};
use super::table::{MemberTable, MemberView, member_view};
use crate::cluster::trust::{ClusterFolder, NodeRecord};
use foca::State;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::membership::NameClaim;

/// Receive buffer of the socket: what the members of a large cell send while this process is stopped for a moment.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// Packets that one drain takes: more than the buffer can have in it, so that all that had arrived before the
/// timers are looked at is read, and a flood does not keep them from being delivered.
const DRAIN_MAX: usize = 4_096;
const DATAGRAM_BYTES_MAX: usize = 2_048;
/// Time between two announcements while no other member is up.
const SEEK_PERIOD: Duration = Duration::from_secs(1);
/// Time between two looks at what no packet and no timer brings: names and addresses.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Time after the start in which a node may lose its name. A copied folder shows in it. Later the claim of
/// another is told and counted alone: a holder of the UDP key can claim any name, and must not end a node that
/// runs by that.
const NAME_LOSS_MAX: Duration = Duration::from_secs(30);
/// Members that are down to which a node announces itself at once when it has come back.
const DOWN_MAX: usize = 64;
const COMMANDS_MAX: usize = 64;

/// Called once if the name of this node belongs to another, with the error.
type OnRefused = Box<dyn FnOnce(String) + Send>;

/// Membership of one node.
pub struct MembershipSettings {
    /// The node.
    pub node: NodeRecord,
    /// Its folder, for its generation.
    pub folder: ClusterFolder,
    /// Keys of packets.
    pub keyring: Keyring,
    /// Facts that the node tells of itself.
    pub facts: Facts,
    /// Called once if the name of this node belongs to another, with the error.
    pub on_refused: OnRefused,
}

/// Members of a cell, as this node knows them. Stopped or dropped, it tells the others that the node leaves.
pub struct Membership {
    shared: Arc<Shared>,
    commands: SyncSender<Command>,
    wake: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Command {
    Facts(Facts),
    Drain(DrainNote),
    Stop,
}

struct Shared {
    table: Mutex<MemberTable>,
    own: Mutex<MemberId>,
    notes: SharedNotes,
    counts: Arc<MembershipCounts>,
    started: Instant,
}

struct Gossip {
    driver: Driver,
    socket: UdpSocket,
    wake: Arc<OwnedFd>,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    folder: ClusterFolder,
    seeds: Vec<String>,
    facts: Facts,
    claim: NameClaim,
    on_refused: Option<OnRefused>,
    next_seek: Duration,
    next_look: Duration,
    /// This node was declared down and has come back, which members that are down in its view do not know.
    has_come_back: bool,
}

// === impl Membership ===

impl Membership {
    /// Opens the socket and starts the thread.
    ///
    /// # Errors
    ///
    /// When the socket can't be opened, the generation can't be persisted, or the system refuses a thread.
    pub fn start(settings: MembershipSettings) -> Result<Self, MembershipError> {
        let MembershipSettings { mut node, folder, keyring, facts, on_refused } = settings;
        let socket = bind(&mut node, &folder)?;
        let address = node.udp;
        socket.set_nonblocking(true)?;
        // The system may allow less.
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES);
        let id = MemberId {
            node: node.node.as_str().into(),
            cell: node.cell.as_str().into(),
            role: node.role,
            address,
            generation: folder.next_generation(unix_ms())?,
        };
        let (notes, counts) = (SharedNotes::default(), Arc::new(MembershipCounts::default()));
        let driver = Driver::new(id.clone(), keyring, notes.clone(), Arc::clone(&counts));
        let driver = driver.ok_or_else(|| io::Error::other("the name of the node is too long"))?;
        let shared = Arc::new(Shared {
            table: Mutex::default(),
            own: Mutex::new(id),
            notes,
            counts,
            started: Instant::now(),
        });
        let wake = Arc::new(
            eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(io::Error::from)?,
        );
        let (commands, commands_in) = sync_channel(COMMANDS_MAX);
        let gossip = Gossip {
            driver,
            socket,
            wake: Arc::clone(&wake),
            commands: commands_in,
            shared: Arc::clone(&shared),
            folder,
            seeds: node.seeds,
            facts,
            claim: NameClaim::default(),
            on_refused: Some(on_refused),
            next_seek: Duration::ZERO,
            next_look: Duration::ZERO,
            has_come_back: false,
        };
        let thread = thread::Builder::new()
            .name("tidegate-members".to_owned())
            .spawn(move || gossip.run())?;
        Ok(Self { shared, commands, wake, thread: Mutex::new(Some(thread)) })
    }

    /// Every member by name, this node among them.
    #[must_use]
    pub fn members(&self) -> Vec<MemberView> {
        let own = lock(&self.shared.own).clone();
        let notes = self.shared.notes.lock();
        let up = self.shared.started.elapsed();
        let itself = member_view(&own, State::Alive, up, None, &notes);
        let mut views = lock(&self.shared.table).views(Instant::now(), &notes);
        views.retain(|view| *view.node != *own.node);
        views.push(MemberView { is_self: true, ..itself });
        views.sort_by(|a, b| a.node.cmp(&b.node));
        views
    }

    /// UDP address that other members send to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        lock(&self.shared.own).address
    }

    /// Counters since the start.
    #[must_use]
    pub fn counts(&self) -> PacketCounts {
        self.shared.counts.view()
    }

    pub(in crate::cluster) fn meters(&self) -> &MembershipCounts {
        &self.shared.counts
    }

    /// True if a member of that name is up, or is thought to be.
    #[must_use]
    pub fn is_live(&self, node: &str) -> bool {
        let is_up = |view: &MemberView| {
            use super::table::MemberState::{Alive, Suspect};
            view.node == node && matches!(view.state, Alive | Suspect)
        };
        self.members().iter().any(is_up)
    }

    /// Tells the members what this node says of itself.
    pub fn tell(&self, facts: Facts) {
        self.command(Command::Facts(facts));
    }

    /// Tells the members that a node is drained, or is not.
    pub fn tell_drain(&self, drain: DrainNote) {
        self.command(Command::Drain(drain));
    }

    /// Tells the members that this node leaves, and ends the thread.
    pub fn stop(&self) {
        let Some(thread) = lock(&self.thread).take() else { return };
        self.command(Command::Stop);
        // A thread that panicked has logged it.
        let _ = thread.join();
    }

    fn command(&self, command: Command) {
        // Fails only when the thread has ended.
        let _ = self.commands.send(command);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.stop();
    }
}

// === impl Gossip ===

impl Gossip {
    fn run(mut self) {
        self.spread_own_notes();
        loop {
            self.wait();
            self.drain_socket();
            let stop = self.obey();
            // After the socket: an answer that has arrived must count before the timer that waits for it.
            while self.driver.fire(self.now()) {
                self.finish(None);
            }
            self.look();
            if stop {
                return self.leave();
            }
        }
    }

    fn now(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Waits for a packet, a command or the next timer.
    fn wait(&self) {
        let next = self.next_look.min(self.next_seek);
        let next = self.driver.next_due().map_or(next, |due| due.min(next));
        let wait = next.saturating_sub(self.now());
        let timeout = Timespec::try_from(wait).ok();
        let mut fds = [
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        // Interrupted, it looks again.
        let _ = poll(&mut fds, timeout.as_ref());
        let mut woken = [0; 8];
        let _ = rustix::io::read(&*self.wake, &mut woken);
    }

    fn drain_socket(&mut self) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..DRAIN_MAX {
            match self.socket.recv_from(&mut buffer) {
                Ok((bytes, _from)) => {
                    if let Some(source) = self.driver.receive(&mut buffer[..bytes]) {
                        self.finish(Some(&source));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Of a packet that was sent before: its destination has no socket.
                Err(_) => {}
            }
        }
    }

    /// Follows commands. True when the thread shall end.
    fn obey(&mut self) -> bool {
        let mut stop = false;
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Facts(facts) => {
                    self.facts = facts;
                    self.spread_own_notes();
                }
                Command::Drain(drain) => self.driver.spread(&Note::Drain(drain)),
                Command::Stop => stop = true,
            }
        }
        stop
    }

    /// Carries out what a step has left to do.
    fn finish(&mut self, from: Option<&str>) {
        let now = self.now();
        let Step { packets, renewed, has_newcomers } = self.driver.finish(now);
        if let Some(generation) = renewed {
            // Before a packet has it: a restart must not use it again.
            if let Err(error) = self.folder.persist_generation(generation) {
                tracing::error!(%error, generation, "the generation is not persisted");
            }
            *lock(&self.shared.own) = self.driver.id().clone();
            self.has_come_back = true;
        }
        for (to, packet) in packets {
            let sent = self.socket.send_to(&packet, to);
            self.shared.counts.sent(sent.is_ok());
        }
        if has_newcomers {
            self.spread_own_notes();
        }
        self.driver.update(now, &mut lock(&self.shared.table), from);
    }

    /// Spreads what this node says of itself, and the drains that it knows: members that came later lack them.
    fn spread_own_notes(&mut self) {
        let id = self.driver.id();
        let (node, generation) = (id.node.to_string(), id.generation);
        let facts = Note::Facts { node, generation, facts: self.facts.clone() };
        {
            let mut notes = self.shared.notes.lock();
            if let Note::Facts { node, generation, facts } = &facts {
                notes.facts.insert(node.clone(), (*generation, facts.clone()));
            }
        }
        self.driver.spread(&facts);
        let drains: Vec<_> = self.shared.notes.lock().drains.values().cloned().collect();
        for drain in drains {
            self.driver.spread(&Note::Drain(drain));
        }
    }

    /// Looks for members while there is none, and at the name of this node.
    fn look(&mut self) {
        let now = self.now();
        if now >= self.next_seek {
            self.next_seek = now + SEEK_PERIOD;
            if self.driver.is_alone() {
                self.seek();
            }
        }
        if std::mem::take(&mut self.has_come_back) {
            // Else each step of a healing partition would wait for the next announcement.
            let down: Vec<SocketAddr> = lock(&self.shared.table).down().take(DOWN_MAX).collect();
            down.into_iter().for_each(|address| self.driver.announce(address));
            self.finish(None);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK_PERIOD;
            self.claim_name(now);
        }
    }

    /// Announces this node to its seeds and to the members that were there.
    fn seek(&mut self) {
        let own = self.driver.id().address;
        let mut addresses: Vec<SocketAddr> = lock(&self.shared.table).addresses().collect();
        for seed in &self.seeds {
            match seed.to_socket_addrs() {
                Ok(found) => addresses.extend(found),
                Err(error) => tracing::debug!(seed, %error, "a seed is not found"),
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        for address in addresses.into_iter().filter(|address| *address != own) {
            self.driver.announce(address);
        }
        self.finish(None);
    }

    fn claim_name(&mut self, now: Duration) {
        let id = self.driver.id().clone();
        let table = lock(&self.shared.table);
        let namesakes: Vec<MemberId> = table.namesakes(&id.node, id.address).cloned().collect();
        drop(table);
        let others = namesakes.iter().map(|other| other.generation);
        if self.claim.observe(id.generation, others, now) {
            return;
        }
        let Some(on_refused) = self.on_refused.take() else { return };
        let at = namesakes.first().map_or(id.address, |other| other.address);
        let node = &id.node;
        if now > NAME_LOSS_MAX {
            self.shared.counts.name_contested();
            return tracing::error!(
                %node, %at,
                "another node claims the name of this one: a copied folder, or somebody has the UDP key"
            );
        }
        on_refused(format!(
            "a node named {node} is up at {at} since before this one: each node needs a name of its own; let this \
             one join anew, with another --node"
        ));
    }

    fn leave(mut self) {
        self.facts.left = true;
        self.spread_own_notes();
        self.driver.leave();
        self.finish(None);
    }
}

/// Opens the socket of a node. At its first start another port may be taken, and is persisted: a node that joined
/// at the same moment may have the one that was free.
fn bind(node: &mut NodeRecord, folder: &ClusterFolder) -> Result<UdpSocket, MembershipError> {
    let address = node.listen.unwrap_or(node.udp);
    let refused = |source| MembershipError::Bind { address, source };
    match UdpSocket::bind(address) {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse
                && node.listen.is_none()
                && folder.is_new() =>
        {
            let socket = UdpSocket::bind((address.ip(), 0)).map_err(refused)?;
            node.udp = socket.local_addr()?;
            folder.write_node(node)?;
            Ok(socket)
        }
        bound => bound.map_err(refused),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder panics; a view that is half updated would still be a view.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds of Unix time.
fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
