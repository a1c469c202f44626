use super::error::ClusterError;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tidegate::membership::{MemberRole, next_generation};

/// Folder of all nodes of a machine in the state folder, and the files in the folder of one.
const CLUSTER: &str = "cluster";
const NODE: &str = "node.json";
const CERTIFICATE: &str = "node.pem";
const KEY: &str = "node.key";
const AUTHORITY: &str = "ca.pem";
const GENERATION: &str = "generation";
const LOCK: &str = "lock";
/// Bits of a mode with which every user can read a file.
const READABLE_BY_ALL: u32 = 0o007;

/// Folder with certificate, keys and addresses of one node: `cluster/ROLE` in the state folder, so that a machine
/// can have a node of each role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFolder(PathBuf);

/// A node, as its folder has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRecord {
    /// Version of this format.
    pub version: u8,
    /// The cell.
    pub cell: String,
    /// The role.
    pub role: MemberRole,
    /// Name, unique in the cell.
    pub node: String,
    /// Host by which other nodes reach this one, a name or an IP address.
    pub host: String,
    /// UDP address that other members send to.
    pub udp: SocketAddr,
    /// Address that its UDP socket listens on, where that is another one, such as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// UDP addresses of members that it joined by, `HOST:PORT`; the host may be a name.
    pub seeds: Vec<String>,
    /// The manager that it joined by.
    pub manager: Option<ManagerRecord>,
}

/// UDP addresses that a node is told, instead of those that it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpAddresses {
    /// Address that other members send to.
    pub advertised: Option<SocketAddr>,
    /// Address that the socket listens on, where that is another one.
    pub listen: Option<SocketAddr>,
}

/// The manager that a node joined by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerRecord {
    /// Its port for workers, `HOST:PORT`.
    pub workers: String,
    /// URL of its port for clients, once that is known.
    pub clients: Option<String>,
}

// === impl NodeRecord ===

impl NodeRecord {
    /// URL by which other nodes reach a port of this one. `None` for a port on loopback of a node elsewhere.
    #[must_use]
    pub fn clients_url(&self, address: SocketAddr, is_tls: bool) -> Option<String> {
        let (ip, port) = (address.ip(), address.port());
        if ip.is_loopback() && !self.udp.ip().is_loopback() {
            return None;
        }
        let host = if ip.is_unspecified() { self.host.clone() } else { ip.to_string() };
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let scheme = if is_tls { "https" } else { "http" };
        Some(format!("{scheme}://{host}:{port}"))
    }
}

/// Exclusive use of a folder's files, until it is dropped.
pub struct FolderLock {
    _file: File,
}

// === impl ClusterFolder ===

impl ClusterFolder {
    /// Version of the files.
    pub const VERSION: u8 = 1;

    /// The folder of a node in a state folder.
    #[must_use]
    pub fn of(state_folder: &Path, role: MemberRole) -> Self {
        Self(state_folder.join(CLUSTER).join(role.name()))
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Path of the certificate chain.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.0.join(CERTIFICATE)
    }

    /// Path of the private key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.0.join(KEY)
    }

    /// Path of the certificate of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.0.join(AUTHORITY)
    }

    /// True if a node has joined with this folder.
    #[must_use]
    pub fn has_node(&self) -> bool {
        self.0.join(NODE).exists()
    }

    /// True until the node has started for the first time.
    pub(in crate::cluster) fn is_new(&self) -> bool {
        !self.0.join(GENERATION).exists()
    }

    /// The node.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is not what this version writes.
    pub fn node(&self) -> Result<NodeRecord, ClusterError> {
        let record: NodeRecord = self.read_json(NODE)?;
        match record.version {
            Self::VERSION => Ok(record),
            other => Err(self.content(NODE, format!("version {other}; expected 1"))),
        }
    }

    /// Writes the node: with this file, the folder has one.
    pub(in crate::cluster) fn write_node(&self, record: &NodeRecord) -> Result<(), ClusterError> {
        self.write_json(NODE, record)
    }

    /// Makes the folder, for its user alone. Refuses one that has a node.
    pub(in crate::cluster) fn create(&self) -> Result<(), ClusterError> {
        if self.has_node() {
            let NodeRecord { node, cell, .. } = self.node()?;
            return Err(ClusterError::Present { path: self.0.clone(), node, cell });
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|source| ClusterError::File { path: self.0.clone(), source })
    }

    /// The next generation of the node, persisted before it is used.
    ///
    /// # Errors
    ///
    /// When it can't be read or persisted.
    pub fn next_generation(&self, unix_ms: u64) -> Result<u64, ClusterError> {
        let persisted = match self.read(GENERATION) {
            Ok(text) => Some(
                text.trim()
                    .parse()
                    .map_err(|_| self.content(GENERATION, "expected one number".to_owned()))?,
            ),
            Err(ClusterError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => return Err(error),
        };
        let next = next_generation(persisted, unix_ms);
        self.persist_generation(next).map(|()| next)
    }

    /// Persists the generation of the node.
    pub(in crate::cluster) fn persist_generation(&self, now: u64) -> Result<(), ClusterError> {
        self.write(GENERATION, format!("{now}\n").as_bytes())
    }

    /// Waits until no other process changes the files.
    pub(super) fn lock(&self) -> Result<FolderLock, ClusterError> {
        let path = self.0.join(LOCK);
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let locked = opened.and_then(|file| {
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(FolderLock { _file: file })
        });
        locked.map_err(|source| ClusterError::File { path, source })
    }

    /// Reads a file that not every user may read.
    pub(in crate::cluster) fn read(&self, name: &str) -> Result<String, ClusterError> {
        let path = self.0.join(name);
        let read = || {
            let text = fs::read_to_string(&path)?;
            Ok((text, fs::metadata(&path)?.permissions().mode() & 0o777))
        };
        let failed = |source| ClusterError::File { path: path.clone(), source };
        let (text, mode) = read().map_err(failed)?;
        match name != AUTHORITY && mode & READABLE_BY_ALL != 0 {
            true => Err(ClusterError::Exposed { path, mode }),
            false => Ok(text),
        }
    }

    /// Replaces a file as a whole, readable for its user alone.
    pub(in crate::cluster) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ClusterError> {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        let write = || {
            let mut options = OpenOptions::new();
            let mut file =
                options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.0)?.sync_all()
        };
        write().map_err(|source| ClusterError::File { path, source })
    }

    pub(in crate::cluster) fn read_json<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<T, ClusterError> {
        let text = self.read(name)?;
        serde_json::from_str(&text).map_err(|error| self.content(name, error.to_string()))
    }

    /// The content of a file, or the default while there is none.
    pub(in crate::cluster) fn read_json_or_default<T: DeserializeOwned + Default>(
        &self,
        name: &str,
    ) -> Result<T, ClusterError> {
        match self.0.join(name).exists() {
            true => self.read_json(name),
            false => Ok(T::default()),
        }
    }

    pub(in crate::cluster) fn write_json<T: Serialize>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<(), ClusterError> {
        let text = serde_json::to_string_pretty(value);
        let text = text.map_err(|error| self.content(name, error.to_string()))?;
        self.write(name, text.as_bytes())
    }

    pub(in crate::cluster) fn content(&self, name: &str, reason: String) -> ClusterError {
        ClusterError::Content { path: self.0.join(name), reason }
    }
}
