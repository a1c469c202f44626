use foca::Identity;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate::membership::MemberRole;

/// Identity of a member in the gossip: who it is, where its packets go, and which start of it this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberId {
    pub node: Arc<str>,
    pub cell: Arc<str>,
    pub role: MemberRole,
    pub address: SocketAddr,
    pub generation: u64,
}

// === impl MemberId ===

impl MemberId {
    /// The member at an address of which nothing else is known, to announce to.
    pub fn at(address: SocketAddr) -> Self {
        let (node, cell) = (Arc::from(""), Arc::from(""));
        Self { node, cell, role: MemberRole::Manager, address, generation: 0 }
    }

    /// Name of the sender in packets. Has the address: a second node of one name must not shut out the first.
    pub fn sender(&self) -> String {
        format!("{}|{}", self.node, self.address)
    }
}

impl Identity for MemberId {
    type Addr = SocketAddr;

    /// The next generation, with which a member comes back that was declared down.
    fn renew(&self) -> Option<Self> {
        Some(Self { generation: self.generation.checked_add(1)?, ..self.clone() })
    }

    fn addr(&self) -> SocketAddr {
        self.address
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.generation > adversary.generation
    }
}
