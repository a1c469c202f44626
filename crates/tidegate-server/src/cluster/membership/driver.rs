use super::codec::{PacketCodec, read_header};
use super::counts::MembershipCounts;
use super::effects::Effects;
use super::keyring::Keyring;
use super::member_id::MemberId;
use super::notes::{Note, SharedNotes};
use super::packet::{Dropped, OVERHEAD_MAX, Opener, Sealer};
use super::table::MemberTable;
use foca::{Config, Foca, OwnedNotification, PeriodicParams, State, Timer, TimerToken};
use rand::TryRng;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::membership::TimerQueue;
use tidegate::rng::Rng;

/// Times of the gossip: a dead member is suspected after one or two probes, and down 2 s later.
const PROBE_PERIOD: Duration = Duration::from_millis(500);
const PROBE_RTT: Duration = Duration::from_millis(150);
const SUSPICION: Duration = Duration::from_secs(2);
/// Twice the time of a suspicion: the one who suspects has ended it by then, and told the others.
const ORPHANED_AFTER: Duration = Duration::from_secs(4);
const GOSSIP_PERIOD: Duration = Duration::from_millis(200);
const ANNOUNCE_PERIOD: Duration = Duration::from_secs(30);
/// A partition heals when one side announces itself to the other, which is down in its view.
const ANNOUNCE_DOWN_PERIOD: Duration = Duration::from_secs(5);
/// Members that are gone are shown, and announced to, for so long.
const REMEMBER_DOWN: Duration = Duration::from_secs(3_600);
/// Longest UDP payload that no usual network has to split.
const DATAGRAM_BYTES_MAX: usize = 1_400;

/// The gossip of one node, without its socket and clock.
pub struct Driver {
    foca: Foca<MemberId, PacketCodec, GossipRng, SharedNotes>,
    timers: TimerQueue<Due>,
    /// Token of the timers that the gossip still follows.
    token: TimerToken,
    opener: Opener,
    sealer: Sealer,
    keyring: Keyring,
    counts: Arc<MembershipCounts>,
    effects: Effects,
}

/// A timer of a node.
enum Due {
    /// Armed by the gossip.
    Gossip(Timer<MemberId>),
    /// Ends a suspicion that nobody else has ended.
    Orphan(MemberId),
}

/// Work that follows a step.
#[derive(Default)]
pub struct Step {
    /// Sealed packets and their destinations.
    pub packets: Vec<(SocketAddr, Vec<u8>)>,
    /// Generation of the node, if the step has changed it. To be persisted before the packets are sent.
    pub renewed: Option<u64>,
    /// Members have come that do not know this node's notes.
    pub has_newcomers: bool,
}

/// Source of a packet that was taken in.
pub type Source = Arc<str>;

struct GossipRng(Rng);

// === impl Driver ===

impl Driver {
    /// The gossip of a node. `None` for a name that is too long.
    pub fn new(
        id: MemberId,
        keyring: Keyring,
        notes: SharedNotes,
        counts: Arc<MembershipCounts>,
    ) -> Option<Self> {
        let sealer = Sealer::new(&keyring, &id.sender(), id.generation)?;
        let codec = PacketCodec::new(Arc::clone(&counts));
        let rng = GossipRng(Rng::from_process());
        Some(Self {
            foca: Foca::with_custom_broadcast(id, config(), rng, codec, notes),
            timers: TimerQueue::new(PROBE_RTT / 2),
            token: TimerToken::default(),
            opener: Opener::new(keyring.clone()),
            sealer,
            keyring,
            counts,
            effects: Effects::default(),
        })
    }

    /// Identity of this node now.
    pub fn id(&self) -> &MemberId {
        self.foca.identity()
    }

    /// True while no other member is up.
    pub fn is_alone(&self) -> bool {
        self.foca.num_members() == 0
    }

    /// Takes a packet in, and returns who has sent it. One that is dropped changes nothing.
    pub fn receive(&mut self, packet: &mut [u8]) -> Option<Source> {
        let taken = self.take(packet);
        match taken {
            Ok(source) => {
                self.counts.accepted();
                Some(source)
            }
            Err(dropped) => {
                self.counts.dropped(dropped);
                None
            }
        }
    }

    fn take(&mut self, packet: &mut [u8]) -> Result<Source, Dropped> {
        let opened = self.opener.open(packet)?;
        let header = read_header(opened.payload).map_err(|_| Dropped::Malformed)?;
        // A holder of a key speaks for itself alone.
        let source = header.src;
        if source.sender() != opened.sender || source.generation > opened.generation {
            return Err(Dropped::Forged);
        }
        let handled = self.foca.handle_data(opened.payload, &mut self.effects);
        match handled {
            Ok(()) => Ok(source.node),
            Err(error) => {
                tracing::debug!(from = %source.address, %error, "a packet was not taken in");
                Err(Dropped::Malformed)
            }
        }
    }

    /// Due time of the next timer.
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.next_due()
    }

    /// Delivers the next timer that is due. False when none is, or when they were armed again after a stall.
    pub fn fire(&mut self, now: Duration) -> bool {
        let timer = self.timers.pop_due(now);
        self.counts.set_stalls(self.timers.stalls());
        let timer = match timer {
            None => return false,
            Some(Due::Gossip(timer)) => timer,
            Some(Due::Orphan(suspect)) => match self.suspicion(suspect) {
                Some(timer) => timer,
                None => return true,
            },
        };
        if let Err(error) = self.foca.handle_timer(timer, &mut self.effects) {
            tracing::debug!(%error, "a timer of membership was not followed");
        }
        true
    }

    /// The end of a suspicion that lasts although its time is over.
    ///
    /// The gossip forgets the ends of its suspicions when this node comes back after it was declared down, and a
    /// node that suspects another may be gone before it ends that. The suspect may have heard nothing, because the
    /// suspicion was spread while it was cut off, and then it answers every probe and stays suspect for ever. It
    /// is declared down, is told so, and comes back at once.
    fn suspicion(&self, suspect: MemberId) -> Option<Timer<MemberId>> {
        let mut all = self.foca.iter_membership_state();
        let member = all.find(|it| *it.id() == suspect && it.state() == State::Suspect)?;
        let (incarnation, token) = (member.incarnation(), self.token);
        Some(Timer::ChangeSuspectToDown { member_id: suspect, incarnation, token })
    }

    /// Announces this node to an address.
    pub fn announce(&mut self, address: SocketAddr) {
        if let Err(error) = self.foca.announce(MemberId::at(address), &mut self.effects) {
            tracing::debug!(%address, %error, "not announced");
        }
    }

    /// Spreads a note.
    pub fn spread(&mut self, note: &Note) {
        let spread = serde_json::to_vec(note).map(|bytes| self.foca.add_broadcast(&bytes));
        if !matches!(spread, Ok(Ok(_))) {
            tracing::warn!(?note, "a note is not spread");
        }
    }

    /// Tells the members that this node leaves.
    pub fn leave(&mut self) {
        let left = self.foca.broadcast(&mut self.effects);
        if let Err(error) = left.and_then(|()| self.foca.leave_cluster(&mut self.effects)) {
            tracing::debug!(%error, "the members are not told that this node leaves");
        }
    }

    /// Work that the steps since the last call have left.
    pub fn finish(&mut self, now: Duration) -> Step {
        let Effects { packets, timers, news } = std::mem::take(&mut self.effects);
        for (after, timer) in timers {
            self.token = token(&timer).unwrap_or(self.token);
            self.timers.push(now.saturating_add(after), Due::Gossip(timer));
        }
        let mut step = Step::default();
        for notification in news {
            match notification {
                OwnedNotification::Rejoin(id) => {
                    tracing::warn!(
                        generation = id.generation,
                        "declared down by others; rejoining"
                    );
                    self.reseal(&id);
                    step.renewed = Some(id.generation);
                    step.has_newcomers = true;
                }
                OwnedNotification::MemberUp(id) => {
                    tracing::info!(node = %id.node, role = %id.role, address = %id.address, "member up");
                    step.has_newcomers = true;
                }
                OwnedNotification::MemberDown(id) => {
                    tracing::warn!(node = %id.node, role = %id.role, address = %id.address, "member down");
                }
                _ => {}
            }
        }
        let seal = |(to, payload): (SocketAddr, Vec<u8>)| Some((to, self.sealer.seal(&payload)?));
        step.packets = packets.into_iter().filter_map(seal).collect();
        step
    }

    fn reseal(&mut self, id: &MemberId) {
        if let Some(sealer) = Sealer::new(&self.keyring, &id.sender(), id.generation) {
            self.sealer = sealer;
        }
    }

    /// Brings the table up to date after a step. `from` is the member whose packet it was; without it, a timer.
    pub fn update(&mut self, now: Duration, table: &mut MemberTable, from: Option<&str>) {
        let reason = |state| match (state, from) {
            (State::Suspect, Some(from)) => format!("{from} got no answer from it"),
            (State::Down, Some(from)) => format!("{from} says that it is down or was replaced"),
            (State::Suspect, None) => {
                let period = PROBE_PERIOD.as_millis();
                format!(
                    "it answered no probe of this node within {period} ms, nor one through others"
                )
            }
            (_, None) => {
                format!("it did not contradict a suspicion within {} s", SUSPICION.as_secs())
            }
            (State::Alive, Some(_)) => String::new(),
        };
        let all = self.foca.iter_membership_state();
        for suspect in table.update(Instant::now(), all, reason) {
            self.counts.suspected();
            tracing::warn!(node = %suspect.node, from, "member suspected");
            self.timers.push(now.saturating_add(ORPHANED_AFTER), Due::Orphan(suspect));
        }
    }
}

/// Token of a timer, by which the gossip knows those that it still follows.
fn token(timer: &Timer<MemberId>) -> Option<TimerToken> {
    match timer {
        Timer::ProbeRandomMember(token)
        | Timer::PeriodicAnnounce(token)
        | Timer::PeriodicAnnounceDown(token)
        | Timer::PeriodicGossip(token)
        | Timer::SendIndirectProbe { token, .. }
        | Timer::ChangeSuspectToDown { token, .. } => Some(*token),
        Timer::RemoveDown(_) => None,
    }
}

fn config() -> Config {
    let every = |frequency, members| {
        let num_members = NonZeroUsize::new(members).unwrap_or(NonZeroUsize::MIN);
        Some(PeriodicParams { frequency, num_members })
    };
    Config {
        probe_period: PROBE_PERIOD,
        probe_rtt: PROBE_RTT,
        suspect_to_down_after: SUSPICION,
        remove_down_after: Some(REMEMBER_DOWN),
        notify_down_members: true,
        max_transmissions: NonZeroU8::new(10).unwrap_or(NonZeroU8::MIN),
        max_packet_size: NonZeroUsize::new(DATAGRAM_BYTES_MAX - OVERHEAD_MAX)
            .unwrap_or(NonZeroUsize::MIN),
        periodic_announce: every(ANNOUNCE_PERIOD, 1),
        periodic_announce_to_down_members: every(ANNOUNCE_DOWN_PERIOD, 3),
        periodic_gossip: every(GOSSIP_PERIOD, 3),
        ..Config::simple()
    }
}

// === impl GossipRng ===

impl TryRng for GossipRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        // The upper half: its bits are the better ones.
        Ok((self.0.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.next_u64())
    }

    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        for chunk in dst.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
