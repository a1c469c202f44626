use std::io;
use std::path::PathBuf;

/// The files of a cluster can't be made, read or used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file can't be read or written.
    #[error("{}: {source}; make the state folder usable, or choose another with --state-folder", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file has something else in it.
    #[error("{} is not what this version writes: {reason}; restore it, or let the node join again", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Every user can read a secret.
    #[error("every user can read {} (mode {mode:03o}): chmod 600 it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The folder has a node already.
    #[error(
        "{} has node {node} of cell {cell} already; start it, or choose another folder with --state-folder",
        path.display()
    )]
    Present {
        /// The folder.
        path: PathBuf,
        /// Name of the node.
        node: String,
        /// Its cell.
        cell: String,
    },
    /// This node can't sign certificates.
    #[error(
        "this node has no authority: tokens are made on the node where `tidegate cluster init` was run"
    )]
    NoAuthority,
    /// A text that is no name.
    #[error("{given:?} is no name; expected 1 … 64 letters, digits and . _ -")]
    Name {
        /// The text.
        given: String,
    },
    /// A request for a certificate that can't be followed.
    #[error("the certificate request is not valid: {0}")]
    Request(&'static str),
    /// There are too many tokens.
    #[error("there are {0} join tokens already; wait until some expire")]
    TooManyTokens(usize),
    /// A certificate can't be made or used.
    #[error("certificates can't be made or used: {0}")]
    Crypto(String),
    /// The address for membership can't be found.
    #[error("no address for {host}: {reason}; give one that other nodes reach with --host")]
    Host {
        /// The host.
        host: String,
        /// The cause.
        reason: String,
    },
}

impl From<rcgen::Error> for ClusterError {
    fn from(error: rcgen::Error) -> Self {
        Self::Crypto(error.to_string())
    }
}

impl From<rustls::Error> for ClusterError {
    fn from(error: rustls::Error) -> Self {
        Self::Crypto(error.to_string())
    }
}

impl From<ring::error::Unspecified> for ClusterError {
    fn from(_: ring::error::Unspecified) -> Self {
        Self::Crypto("the system gave no random bytes".to_owned())
    }
}
