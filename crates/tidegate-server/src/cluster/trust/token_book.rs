use super::error::ClusterError;
use super::folder::ClusterFolder;
use super::hex::to_hex;
use super::identity::{NodeIdentity, is_name};
use super::token::{JoinToken, SECRET_BYTES, fingerprint};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::membership::MemberRole;

const TOKENS: &str = "tokens.json";
const NODES: &str = "nodes.json";
/// Most tokens that have not expired, and most nodes that have joined.
const TOKENS_MAX: usize = 1_000;
const NODES_MAX: usize = 10_000;

/// Number of nodes that a token lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenUse {
    /// One node.
    Once,
    /// Every node until the token expires.
    UntilExpiry,
}

/// A node may not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinRefused {
    /// The token is none of this cluster.
    #[error("the token is unknown here; make one with `tidegate cluster token`")]
    UnknownToken,
    /// The token is for one node, which has joined.
    #[error(
        "the token was used by {by}; it works once: make another with `tidegate cluster token`"
    )]
    UsedToken {
        /// The node.
        by: String,
    },
    /// The time of the token is over.
    #[error("the token has expired; make another with `tidegate cluster token`")]
    ExpiredToken,
    /// The token is for another role.
    #[error(
        "the token is for a {token}, and this is a {given}; make one with `tidegate cluster token {given}`"
    )]
    OtherRole {
        /// Role of the token.
        token: MemberRole,
        /// Role of the node.
        given: MemberRole,
    },
    /// The name is none.
    #[error("{0:?} is no name of a node; give 1 … 64 letters, digits and . _ - with --node")]
    Name(String),
    /// Another node has the name.
    #[error("a {role} named {node} has joined{}; choose another name with --node", if *live { " and is up" } else { "" })]
    NameTaken {
        /// The name.
        node: String,
        /// Role of the node that has it.
        role: MemberRole,
        /// The node is a live member.
        live: bool,
    },
    /// Too many nodes have joined.
    #[error("{NODES_MAX} nodes have joined already")]
    TooManyNodes,
    /// The files or the request are not usable.
    #[error(transparent)]
    Failed(#[from] ClusterError),
}

/// Tokens and names that an authority has given out, in files that its commands and its node share.
#[derive(Clone, Debug)]
pub struct NodeBook {
    folder: ClusterFolder,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenRecord {
    /// SHA-256 of the secret, in hexadecimal digits.
    sha256: String,
    role: MemberRole,
    uses: TokenUse,
    expires_unix_ms: u64,
    /// Last node that joined with it.
    used_by: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinedNode {
    role: MemberRole,
    joined_unix_ms: u64,
}

// === impl NodeBook ===

impl NodeBook {
    /// The book in the folder of an authority.
    #[must_use]
    pub fn new(folder: ClusterFolder) -> Self {
        Self { folder }
    }

    /// Makes a token for nodes of a role, valid from now on for this time.
    ///
    /// # Errors
    ///
    /// When there are too many, or a file can't be used.
    pub fn add_token(
        &self,
        token: &JoinToken,
        role: MemberRole,
        uses: TokenUse,
        (now_ms, valid): (u64, Duration),
    ) -> Result<(), ClusterError> {
        let _lock = self.folder.lock()?;
        let mut tokens = self.tokens()?;
        tokens.retain(|token| token.expires_unix_ms > now_ms);
        if tokens.len() >= TOKENS_MAX {
            return Err(ClusterError::TooManyTokens(TOKENS_MAX));
        }
        let valid_ms = u64::try_from(valid.as_millis()).unwrap_or(u64::MAX);
        tokens.push(TokenRecord {
            sha256: digest(&token.secret),
            role,
            uses,
            expires_unix_ms: now_ms.saturating_add(valid_ms),
            used_by: None,
        });
        self.folder.write_json(TOKENS, &tokens)
    }

    /// Notes the first node, which joins by nobody.
    pub(in crate::cluster) fn add_first(
        &self,
        identity: &NodeIdentity,
        now_ms: u64,
    ) -> Result<(), ClusterError> {
        let joined = JoinedNode { role: identity.role, joined_unix_ms: now_ms };
        self.folder.write_json(NODES, &BTreeMap::from([(&identity.node, joined)]))
    }

    /// Lets a node in: checks token and name, signs, and only then notes both. A name is given again to the role
    /// that has it, while no such member is live: a machine may be installed anew.
    ///
    /// # Errors
    ///
    /// When the node may not join. The token is then as it was.
    pub fn admit<T>(
        &self,
        secret: &[u8; SECRET_BYTES],
        identity: &NodeIdentity,
        is_live: bool,
        now_ms: u64,
        sign: impl FnOnce() -> Result<T, ClusterError>,
    ) -> Result<T, JoinRefused> {
        let _lock = self.folder.lock()?;
        let (mut tokens, mut nodes) = (self.tokens()?, self.nodes()?);
        let (role, node) = (identity.role, &identity.node);
        let wanted = digest(secret);
        let token = tokens.iter_mut().find(|token| token.sha256 == wanted);
        let token = token.ok_or(JoinRefused::UnknownToken)?;
        match &token.used_by {
            Some(by) if token.uses == TokenUse::Once => {
                return Err(JoinRefused::UsedToken { by: by.clone() });
            }
            _ if token.expires_unix_ms <= now_ms => return Err(JoinRefused::ExpiredToken),
            _ if token.role != role => {
                return Err(JoinRefused::OtherRole { token: token.role, given: role });
            }
            _ => {}
        }
        if !is_name(node) {
            return Err(JoinRefused::Name(node.chars().take(100).collect()));
        }
        match nodes.get(node) {
            Some(other) if other.role != role || is_live => {
                let (node, role) = (node.clone(), other.role);
                return Err(JoinRefused::NameTaken { node, role, live: is_live });
            }
            None if nodes.len() >= NODES_MAX => return Err(JoinRefused::TooManyNodes),
            _ => {}
        }
        let signed = sign()?;
        token.used_by = Some(node.clone());
        nodes.insert(node.clone(), JoinedNode { role, joined_unix_ms: now_ms });
        // The token first: a crash in between costs a token, and lets nobody in twice.
        self.folder.write_json(TOKENS, &tokens)?;
        self.folder.write_json(NODES, &nodes)?;
        Ok(signed)
    }

    fn tokens(&self) -> Result<Vec<TokenRecord>, ClusterError> {
        self.folder.read_json_or_default(TOKENS)
    }

    fn nodes(&self) -> Result<BTreeMap<String, JoinedNode>, ClusterError> {
        self.folder.read_json_or_default(NODES)
    }
}

// === impl JoinRefused ===

impl JoinRefused {
    /// Name in answers and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownToken => "token_unknown",
            Self::UsedToken { .. } => "token_used",
            Self::ExpiredToken => "token_expired",
            Self::OtherRole { .. } => "token_role",
            Self::Name(_) => "name_invalid",
            Self::NameTaken { .. } => "name_taken",
            Self::TooManyNodes => "too_many_nodes",
            Self::Failed(_) => "failed",
        }
    }
}

fn digest(secret: &[u8; SECRET_BYTES]) -> String {
    to_hex(&fingerprint(secret))
}
