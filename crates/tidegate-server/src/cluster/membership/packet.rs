use super::keyring::{KEY_BYTES, Keyring};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use std::collections::HashMap;
use tidegate::membership::ReplayWindow;

/// Version of the packets.
const VERSION: u8 = 1;
/// Version, key id, generation, counter, and the length of the sender's name.
const FIXED_BYTES: usize = 1 + 4 + 8 + 8 + 1;
const TAG_BYTES: usize = 16;
const SALT: &[u8] = b"tidegate membership 1";
/// Most senders that are remembered; beyond them the one that was silent longest is forgotten.
const SENDERS_MAX: usize = 4_096;

/// Overhead of a sealed packet at most.
pub const OVERHEAD_MAX: usize = FIXED_BYTES + u8::MAX as usize + TAG_BYTES;

/// Seals the packets of one generation of a node: each with a counter that is its nonce.
pub struct Sealer {
    header: Vec<u8>,
    key: LessSafeKey,
    counter: u64,
}

/// Opens packets: each once, and only those that a holder of a key has sealed.
pub struct Opener {
    keyring: Keyring,
    senders: HashMap<Box<str>, Sender>,
    heard: u64,
}

struct Sender {
    generation: u64,
    key_id: u32,
    key: LessSafeKey,
    window: ReplayWindow,
    heard: u64,
}

/// A packet that was opened.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    pub sender: String,
    pub generation: u64,
    pub payload: &'a [u8],
}

/// Reason for which a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// No packet of membership.
    Garbage,
    /// Packet of another version.
    Version,
    /// Packet sealed with a key that is not in the keyring.
    UnknownKey,
    /// Packet that no holder of its key has sealed, or that was changed.
    Forged,
    /// Packet that has arrived before, or is of an earlier generation.
    Replayed,
    /// Packet with content that can't be read.
    Malformed,
}

struct KeyLength;

impl KeyType for KeyLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

/// The key of a sender in a generation. `None` only for a length that the algorithm does not have.
fn derive(key: &[u8; KEY_BYTES], sender: &str, generation: u64) -> Option<LessSafeKey> {
    let (name, generation) = (sender.as_bytes(), generation.to_be_bytes());
    let info: [&[u8]; 2] = [&generation, name];
    let mut derived = [0; KEY_BYTES];
    let expanded = Salt::new(HKDF_SHA256, SALT).extract(key);
    expanded.expand(&info, KeyLength).ok()?.fill(&mut derived).ok()?;
    UnboundKey::new(&CHACHA20_POLY1305, &derived).ok().map(LessSafeKey::new)
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[NONCE_LEN - 8..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

// === impl Sealer ===

impl Sealer {
    /// A sealer with the primary key. `None` for a name that is too long.
    pub fn new(keyring: &Keyring, sender: &str, generation: u64) -> Option<Self> {
        let (id, key) = keyring.primary();
        let mut header = vec![VERSION];
        header.extend(id.to_be_bytes());
        header.extend(generation.to_be_bytes());
        header.extend([0; 8]);
        header.push(u8::try_from(sender.len()).ok()?);
        header.extend(sender.as_bytes());
        Some(Self { header, key: derive(key, sender, generation)?, counter: 0 })
    }

    /// Seals a payload. `None` after as many packets as a key may seal.
    pub fn seal(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        self.counter = self.counter.checked_add(1)?;
        let mut packet = self.header.clone();
        packet[13..21].copy_from_slice(&self.counter.to_be_bytes());
        let mut sealed = payload.to_vec();
        let header = Aad::from(&packet);
        let tag = self.key.seal_in_place_separate_tag(nonce(self.counter), header, &mut sealed);
        let tag = tag.ok()?;
        packet.extend(sealed);
        packet.extend(tag.as_ref());
        Some(packet)
    }
}

// === impl Opener ===

impl Opener {
    /// An opener with all keys of a keyring.
    pub fn new(keyring: Keyring) -> Self {
        Self { keyring, senders: HashMap::new(), heard: 0 }
    }

    /// Opens a packet. A packet that is dropped changes nothing.
    pub fn open<'a>(&mut self, packet: &'a mut [u8]) -> Result<Opened<'a>, Dropped> {
        let (header_bytes, sender) = header(packet)?;
        let number = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&packet[from..from + 8]);
            u64::from_be_bytes(bytes)
        };
        let key_id = u32::from_be_bytes([packet[1], packet[2], packet[3], packet[4]]);
        let (generation, counter) = (number(5), number(13));
        let master = self.keyring.find(key_id).ok_or(Dropped::UnknownKey)?;
        let known = self.senders.get(sender.as_str());
        let same = known.filter(|it| it.generation == generation && it.key_id == key_id);
        let derived = match same {
            Some(_) => None,
            None => Some(derive(master, &sender, generation).ok_or(Dropped::Garbage)?),
        };
        let key = derived.as_ref().or(same.map(|same| &same.key)).ok_or(Dropped::Garbage)?;
        let (header, sealed) = packet.split_at_mut(header_bytes);
        let opened = key.open_in_place(nonce(counter), Aad::from(&*header), sealed);
        let payload = opened.map_err(|_| Dropped::Forged)?;
        self.heard += 1;
        let heard = self.heard;
        let sender_of =
            |key| Sender { generation, key_id, key, window: ReplayWindow::default(), heard };
        match (self.senders.get_mut(sender.as_str()), derived) {
            (Some(known), _) if known.generation > generation => return Err(Dropped::Replayed),
            (Some(known), derived) if known.generation == generation => {
                if !known.window.accept(counter) {
                    return Err(Dropped::Replayed);
                }
                // The counters go on when the primary key changes.
                if let Some(key) = derived {
                    (known.key, known.key_id) = (key, key_id);
                }
                known.heard = heard;
            }
            (_, Some(key)) => {
                let mut new = sender_of(key);
                let _first = new.window.accept(counter);
                self.make_room();
                self.senders.insert(sender.clone().into(), new);
            }
            // An equal generation is handled above.
            (_, None) => return Err(Dropped::Garbage),
        }
        Ok(Opened { sender, generation, payload })
    }

    fn make_room(&mut self) {
        if self.senders.len() < SENDERS_MAX {
            return;
        }
        let quietest = self.senders.iter().min_by_key(|(_, sender)| sender.heard);
        if let Some(name) = quietest.map(|(name, _)| name.clone()) {
            self.senders.remove(&name);
        }
    }
}

/// Length of the header, and the sender's name in it.
fn header(packet: &[u8]) -> Result<(usize, String), Dropped> {
    match packet.first() {
        Some(&VERSION) => {}
        Some(_) if packet.len() >= FIXED_BYTES + TAG_BYTES => return Err(Dropped::Version),
        _ => return Err(Dropped::Garbage),
    }
    let name_bytes = packet.get(FIXED_BYTES - 1).copied().map(usize::from);
    let header_bytes = FIXED_BYTES + name_bytes.ok_or(Dropped::Garbage)?;
    if packet.len() < header_bytes + TAG_BYTES {
        return Err(Dropped::Garbage);
    }
    let name = std::str::from_utf8(&packet[FIXED_BYTES..header_bytes]);
    name.map(|name| (header_bytes, name.to_owned())).map_err(|_| Dropped::Garbage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(ids: &[u32]) -> Keyring {
        Keyring::new(ids.iter().map(|id| (*id, [*id as u8; KEY_BYTES])).collect()).unwrap()
    }

    fn sealed(keyring: &Keyring, generation: u64, payloads: &[&str]) -> Vec<Vec<u8>> {
        let mut sealer = Sealer::new(keyring, "a|127.0.0.1:1", generation).unwrap();
        payloads.iter().map(|payload| sealer.seal(payload.as_bytes()).unwrap()).collect()
    }

    fn open(opener: &mut Opener, packet: &[u8]) -> Result<String, Dropped> {
        let mut packet = packet.to_vec();
        let opened = opener.open(&mut packet)?;
        assert_eq!(opened.sender, "a|127.0.0.1:1");
        Ok(String::from_utf8(opened.payload.to_vec()).unwrap())
    }

    #[test]
    fn a_packet_opens_once_and_no_changed_one_does() {
        let keys = ring(&[1]);
        let packets = sealed(&keys, 7, &["one", "two"]);
        let mut opener = Opener::new(keys.clone());
        for at in 0..packets[0].len() {
            for bit in 0..8 {
                let mut changed = packets[0].clone();
                changed[at] ^= 1 << bit;
                assert!(opener.open(&mut changed).is_err(), "byte {at}, bit {bit}");
            }
        }
        assert!(opener.senders.is_empty(), "what is dropped leaves nothing");
        for length in 0..packets[0].len() {
            assert!(opener.open(&mut packets[0][..length].to_vec()).is_err(), "{length}");
        }
        assert_eq!(open(&mut opener, &packets[1]), Ok("two".to_owned()));
        assert_eq!(open(&mut opener, &packets[0]), Ok("one".to_owned()), "in any order");
        assert_eq!(open(&mut opener, &packets[0]), Err(Dropped::Replayed));
        assert_eq!(open(&mut opener, &sealed(&ring(&[2]), 7, &["x"])[0]), Err(Dropped::UnknownKey));
        let other = Keyring::new(vec![(1, [9; KEY_BYTES])]).unwrap();
        assert_eq!(open(&mut opener, &sealed(&other, 7, &["x"])[0]), Err(Dropped::Forged));
        assert_eq!(open(&mut opener, b"hello"), Err(Dropped::Garbage));
        assert_eq!(open(&mut opener, &[9; 200]), Err(Dropped::Version));
    }

    #[test]
    fn an_earlier_generation_is_over_and_a_later_one_begins_anew() {
        let keys = ring(&[1]);
        let mut opener = Opener::new(keys.clone());
        let (old, new) = (sealed(&keys, 7, &["a", "b"]), sealed(&keys, 8, &["c"]));
        assert!(open(&mut opener, &old[0]).is_ok() && open(&mut opener, &new[0]).is_ok());
        assert_eq!(open(&mut opener, &old[1]), Err(Dropped::Replayed));
        assert_eq!(open(&mut opener, &new[0]), Err(Dropped::Replayed));
    }

    #[test]
    fn keys_rotate_without_a_packet_lost() {
        // Every node learns the new key, then each seals with it, then the old one goes.
        let (old, both, turned, new) = (ring(&[1]), ring(&[1, 2]), ring(&[2, 1]), ring(&[2]));
        for (sender, receiver) in [
            (&old, &both),
            (&both, &old),
            (&both, &turned),
            (&turned, &both),
            (&turned, &new),
            (&new, &turned),
        ] {
            let mut opener = Opener::new(receiver.clone());
            assert!(
                open(&mut opener, &sealed(sender, 7, &["x"])[0]).is_ok(),
                "{sender:?} {receiver:?}"
            );
        }
        let mut opener = Opener::new(new);
        assert_eq!(open(&mut opener, &sealed(&old, 7, &["x"])[0]), Err(Dropped::UnknownKey));
        // A replay under another key has another key, but the same counter.
        let mut opener = Opener::new(both.clone());
        assert!(open(&mut opener, &sealed(&both, 7, &["x"])[0]).is_ok());
        assert_eq!(open(&mut opener, &sealed(&turned, 7, &["x"])[0]), Err(Dropped::Replayed));
    }
}
