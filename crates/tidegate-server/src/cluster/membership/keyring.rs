use crate::cluster::trust::{ClusterError, ClusterFolder, from_hex, to_hex};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
const FILE: &str = "keyring.json";
/// Most keys: the one in use, and those before and after it.
const KEYS_MAX: usize = 8;

/// Keys of a cell's UDP packets. Packets of every key are accepted; the first one seals.
#[derive(Clone, PartialEq, Eq)]
pub struct Keyring(Vec<(u32, [u8; KEY_BYTES])>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRecord {
    id: u32,
    /// In hexadecimal digits.
    key: String,
}

// === impl Keyring ===

impl Keyring {
    /// A keyring of these keys, the first of which seals. `None` unless there are 1 … 8 with different ids.
    #[must_use]
    pub fn new(keys: Vec<(u32, [u8; KEY_BYTES])>) -> Option<Self> {
        let ids: std::collections::BTreeSet<u32> = keys.iter().map(|(id, _)| *id).collect();
        ((1..=KEYS_MAX).contains(&keys.len()) && ids.len() == keys.len()).then_some(Self(keys))
    }

    /// A keyring of one new key.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, ClusterError> {
        let mut key = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut key)?;
        Ok(Self(vec![(1, key)]))
    }

    /// Reads the keyring of a node.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is no keyring.
    pub fn open(folder: &ClusterFolder) -> Result<Self, ClusterError> {
        let records: Vec<KeyRecord> = folder.read_json(FILE)?;
        let keys = records.iter().map(|record| Some((record.id, from_hex(&record.key)?)));
        let keys: Option<Vec<_>> = keys.collect();
        keys.and_then(Self::new).ok_or_else(|| {
            let expected = "expected 1 … 8 keys of 64 hexadecimal digits with different ids";
            folder.content(FILE, expected.to_owned())
        })
    }

    /// Writes the keyring of a node.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&self, folder: &ClusterFolder) -> Result<(), ClusterError> {
        let record = |(id, key): &(u32, [u8; KEY_BYTES])| KeyRecord { id: *id, key: to_hex(key) };
        folder.write_json(FILE, &self.0.iter().map(record).collect::<Vec<_>>())
    }

    /// The key that seals, with its id.
    pub(super) fn primary(&self) -> &(u32, [u8; KEY_BYTES]) {
        // Never empty.
        &self.0[0]
    }

    pub(super) fn find(&self, id: u32) -> Option<&[u8; KEY_BYTES]> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}
