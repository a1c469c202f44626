use super::join::{JoinDesk, host_and_port, udp_address};
use super::membership::{
    DrainNote, Facts, Keyring, Membership, MembershipError, MembershipSettings,
};
use super::trust::{
    Authority, ClusterError, ClusterFolder, JoinToken, ManagerRecord, NodeBook, NodeIdentity,
    NodeRecord, TokenUse, UdpAddresses,
};
use jiff::Timestamp;
use rcgen::KeyPair;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::membership::MemberRole;

const DRAINS: &str = "drains.json";

/// A node of a cluster on this machine: its folder, opened.
pub struct Cluster {
    folder: ClusterFolder,
    node: NodeRecord,
    keyring: Keyring,
    desk: Option<Arc<JoinDesk>>,
    /// Drains that this node has set, also before its last restart.
    drains: Mutex<Vec<DrainNote>>,
}

/// First node of a cluster.
#[derive(Clone, Debug)]
pub struct InitWish {
    /// Name of the cell.
    pub cell: String,
    /// Name of the node.
    pub node: String,
    /// Host by which other nodes reach this one.
    pub host: String,
    /// Its port for workers, which nodes also join by.
    pub workers_port: u16,
    /// Its UDP addresses.
    pub udp: UdpAddresses,
}

/// Makes a cluster: the authority, the certificate of this node, which is a manager, and the key of UDP packets.
///
/// # Errors
///
/// When the folder has a node, a name is none, or a file can't be written.
pub fn init(folder: &ClusterFolder, wish: &InitWish) -> Result<NodeRecord, ClusterError> {
    let InitWish { cell, node, host, workers_port, udp: given } = wish;
    let identity = NodeIdentity::new(cell, MemberRole::Manager, node)?;
    let udp = udp_address(host, MemberRole::Manager, *given)?;
    folder.create()?;
    let authority = Authority::create(folder, cell)?;
    let key = KeyPair::generate()?;
    folder.write("node.pem", authority.sign(&key, &identity, host)?.as_bytes())?;
    folder.write("node.key", key.serialize_pem().as_bytes())?;
    Keyring::generate()?.write(folder)?;
    NodeBook::new(folder.clone()).add_first(&identity, unix_ms())?;
    let record = NodeRecord {
        version: ClusterFolder::VERSION,
        cell: cell.clone(),
        role: MemberRole::Manager,
        node: node.clone(),
        host: host.clone(),
        udp,
        listen: given.listen,
        seeds: Vec::new(),
        manager: Some(ManagerRecord { workers: host_and_port(host, *workers_port), clients: None }),
    };
    folder.write_node(&record)?;
    Ok(record)
}

/// Makes a token for nodes of a role.
///
/// # Errors
///
/// When the folder has no authority, there are too many tokens, or a file can't be used.
pub fn new_token(
    folder: &ClusterFolder,
    role: MemberRole,
    uses: TokenUse,
    valid: Duration,
) -> Result<JoinToken, ClusterError> {
    let token = JoinToken::new(Authority::open(folder)?.fingerprint())?;
    NodeBook::new(folder.clone()).add_token(&token, role, uses, (unix_ms(), valid))?;
    Ok(token)
}

// === impl Cluster ===

impl Cluster {
    /// Opens the folder of a node.
    ///
    /// # Errors
    ///
    /// When a file of it can't be used.
    pub fn open(folder: ClusterFolder) -> Result<Self, ClusterError> {
        let node = folder.node()?;
        let desk = match JoinDesk::open(&folder, node.clone()) {
            Ok(desk) => Some(Arc::new(desk)),
            Err(ClusterError::NoAuthority) => None,
            Err(error) => return Err(error),
        };
        let drains = Mutex::new(folder.read_json_or_default(DRAINS)?);
        Ok(Self { keyring: Keyring::open(&folder)?, node, desk, drains, folder })
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &NodeRecord {
        &self.node
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &ClusterFolder {
        &self.folder
    }

    /// The desk that lets nodes join, if this node has the authority.
    #[must_use]
    pub fn desk(&self) -> Option<&Arc<JoinDesk>> {
        self.desk.as_ref()
    }

    /// Starts membership. `on_refused` is called once if the name of this node belongs to another.
    ///
    /// # Errors
    ///
    /// When its socket can't be opened, or the system refuses a thread.
    pub fn start(
        &self,
        on_refused: impl FnOnce(String) + Send + 'static,
    ) -> Result<Arc<Membership>, MembershipError> {
        let membership = Membership::start(MembershipSettings {
            node: self.node.clone(),
            folder: self.folder.clone(),
            keyring: self.keyring.clone(),
            facts: own_facts(None),
            on_refused: Box::new(on_refused),
        })?;
        let membership = Arc::new(membership);
        self.drains().into_iter().for_each(|drain| membership.tell_drain(drain));
        if let Some(desk) = &self.desk {
            desk.set_udp_port(membership.address().port());
            let members = Arc::downgrade(&membership);
            desk.set_is_live(move |node| members.upgrade().is_some_and(|it| it.is_live(node)));
        }
        Ok(membership)
    }

    /// Tells joining nodes and members the URL of the port for clients, once it is open.
    pub fn set_clients(&self, membership: &Membership, url: &str) {
        if let Some(desk) = &self.desk {
            desk.set_clients(url.to_owned());
        }
        membership.tell(own_facts(Some(url.to_owned())));
    }

    /// Drains that this node has set.
    #[must_use]
    pub fn drains(&self) -> Vec<DrainNote> {
        self.drains.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets or ends the drain of a node, and persists it.
    ///
    /// # Errors
    ///
    /// When it can't be persisted; nothing has changed then.
    pub fn set_drain(&self, node: &str, draining: bool) -> Result<DrainNote, ClusterError> {
        let mut drains = self.drains.lock().unwrap_or_else(PoisonError::into_inner);
        let before = drains.iter().find(|drain| drain.node == node).map(|drain| drain.at_unix_ms);
        // Later than the change before it, also after the clock was set back.
        let at_unix_ms = tidegate::membership::next_generation(before, unix_ms());
        let note = DrainNote { node: node.to_owned(), draining, at_unix_ms };
        let mut changed = drains.clone();
        changed.retain(|drain| drain.node != node);
        changed.push(note.clone());
        self.folder.write_json(DRAINS, &changed)?;
        *drains = changed;
        Ok(note)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("node", &self.node).finish_non_exhaustive()
    }
}

fn own_facts(clients: Option<String>) -> Facts {
    Facts { version: env!("CARGO_PKG_VERSION").to_owned(), clients, left: false }
}

fn unix_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default()
}
