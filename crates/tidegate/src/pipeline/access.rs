use super::protocol::Protocol;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use tidegate_core::frame::SenderToken;
use tidegate_core::usage::UsageRecord;

/// Decides who a sender is by the token that it shows, and by the client certificate of its connection.
pub trait SenderAccess: fmt::Debug + Send + Sync {
    /// The identity of a sender with this token, or without one, whose certificate names `certified`.
    ///
    /// # Errors
    ///
    /// When a token is needed and missing, is unknown, or is another client's than the certificate.
    fn identify(
        &self,
        protocol: Protocol,
        token: Option<&SenderToken>,
        certified: Option<&Arc<SenderClient>>,
    ) -> Result<SenderIdentity, AccessError>;
}

/// Identity of a sender.
#[derive(Clone, Debug)]
pub enum SenderIdentity {
    /// Anyone: no tokens are configured.
    Open,
    /// A sender without a token, where that is allowed beside senders with one.
    Anonymous,
    /// The holder of a token or of a client certificate.
    Client(Arc<SenderClient>),
}

/// The holder of a token or of a client certificate.
#[derive(Debug)]
pub struct SenderClient {
    /// Unique name.
    pub name: Arc<str>,
    /// The tenants whose records it may send; `None` for all.
    pub tenants: Option<HashSet<Arc<str>>>,
}

/// Reason why a sender is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// A token is needed.
    #[error(
        "a token of a client is needed: show it in the hello, or as a first line `auth TOKEN`; or \
         a client certificate that names one, at a port with client_ca"
    )]
    Missing,
    /// No client has this token.
    #[error("no client has this token")]
    Unknown,
    /// The token and the certificate are of different clients, or the certificate has the names of two.
    #[error("token and client certificate name different clients: show those of one")]
    Conflict,
}

/// Access without tokens: every sender is let in, and a token means nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenAccess;

/// A record of a tenant that its sender's client does not own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "tenant {tenant:?} is not one of client {client:?}: add it to the `tenants` of this client"
)]
pub(crate) struct ForeignTenant {
    tenant: Arc<str>,
    client: Arc<str>,
}

// === impl OpenAccess ===

impl SenderAccess for OpenAccess {
    fn identify(
        &self,
        _protocol: Protocol,
        _token: Option<&SenderToken>,
        _certified: Option<&Arc<SenderClient>>,
    ) -> Result<SenderIdentity, AccessError> {
        Ok(SenderIdentity::Open)
    }
}

// === impl SenderIdentity ===

impl SenderIdentity {
    /// The owner of the names that this sender uses; `None` where names have no owners.
    pub(crate) fn owner(&self) -> Option<Arc<str>> {
        match self {
            Self::Open => None,
            Self::Anonymous => Some(Arc::from("")),
            Self::Client(client) => Some(Arc::clone(&client.name)),
        }
    }

    /// Checks that the sender may send a record of this tenant.
    pub(crate) fn check(&self, record: &UsageRecord) -> Result<(), ForeignTenant> {
        let Self::Client(client) = self else { return Ok(()) };
        match &client.tenants {
            Some(tenants) if !tenants.contains(&record.tenant) => {
                let (tenant, client) = (Arc::clone(&record.tenant), Arc::clone(&client.name));
                Err(ForeignTenant { tenant, client })
            }
            _ => Ok(()),
        }
    }

    /// Checks all records of a batch.
    pub(crate) fn check_all(&self, records: &[UsageRecord]) -> Result<(), ForeignTenant> {
        if !matches!(self, Self::Client(_)) {
            return Ok(());
        }
        records.iter().try_for_each(|record| self.check(record))
    }
}
