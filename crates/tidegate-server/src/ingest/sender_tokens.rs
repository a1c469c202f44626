use crate::config::{ClaimsConfig, Client, IngestConfig};
use crate::http::admission::Tokens;
use crate::http::tls::PeerCertificate;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate::frame::SenderToken;
use tidegate::pipeline::{AccessError, Protocol, SenderAccess, SenderClient, SenderIdentity};

/// Name of operators among the owners of senders. No client has it: names of clients have no space.
const OPERATORS: &str = "all operators";

/// The tokens and client certificates of clients and operators, as senders of usage records show them.
#[derive(Debug)]
pub struct SenderTokens {
    tokens: Tokens<usize>,
    holders: Vec<Arc<SenderClient>>,
    frames_need_one: bool,
    lines_need_one: bool,
}

// === impl SenderTokens ===

impl SenderTokens {
    /// The tokens and certificates of a configuration. A port beyond loopback needs one of them.
    pub fn new(claims: &ClaimsConfig, ingest: &IngestConfig) -> Self {
        let client = |client: &Client| SenderClient {
            name: client.name.as_str().into(),
            tenants: Some(client.tenants.iter().map(|tenant| tenant.as_str().into()).collect()),
        };
        let mut holders: Vec<_> = claims.clients.iter().map(client).map(Arc::new).collect();
        let operators = holders.len();
        holders.push(Arc::new(SenderClient { name: OPERATORS.into(), tenants: None }));
        let of_clients = claims.clients.iter().map(|client| client.token).zip(0..);
        let of_operators = claims.operators.iter().map(|operator| (operator.token, operators));
        let of_all = of_clients.chain(of_operators);
        let certified = claims.clients.iter().map(|client| &client.certificate).zip(0..);
        let operators = claims.operators.iter().map(|operator| (&operator.certificate, operators));
        let certified = certified.chain(operators);
        let certified = certified.filter_map(|(name, at)| Some((name.clone()?, at)));
        let needed = |address: SocketAddr| {
            ingest.tokens_required || !address.ip().to_canonical().is_loopback()
        };
        Self {
            tokens: Tokens::new(of_all.filter_map(|(token, at)| Some((token?, at))))
                .certified(certified),
            holders,
            frames_need_one: needed(ingest.frames_address),
            lines_need_one: needed(ingest.lines_address),
        }
    }

    /// The holder of a certificate; `None` for one that names nobody.
    ///
    /// # Errors
    ///
    /// When it has the names of two.
    pub fn certified(
        &self,
        certificate: &PeerCertificate,
    ) -> Result<Option<Arc<SenderClient>>, AccessError> {
        let holder = self.tokens.certified_holder(certificate.names());
        let holder = holder.map_err(|_| AccessError::Conflict)?;
        Ok(holder.and_then(|holder| self.holders.get(holder)).map(Arc::clone))
    }

    /// Returns true if senders of this protocol need a token or a certificate.
    pub fn needs_token(&self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Frames => self.frames_need_one,
            Protocol::Lines => self.lines_need_one,
        }
    }
}

impl SenderAccess for SenderTokens {
    fn identify(
        &self,
        protocol: Protocol,
        token: Option<&SenderToken>,
        certified: Option<&Arc<SenderClient>>,
    ) -> Result<SenderIdentity, AccessError> {
        let needs_one = self.needs_token(protocol);
        let client = |it: &Arc<SenderClient>| SenderIdentity::Client(Arc::clone(it));
        match (token, certified) {
            // A token that nobody gave out means nothing, unless one must be shown.
            _ if self.tokens.is_empty() && !needs_one => Ok(SenderIdentity::Open),
            (None, Some(certified)) => Ok(client(certified)),
            (None, None) if needs_one => Err(AccessError::Missing),
            (None, None) => Ok(SenderIdentity::Anonymous),
            (Some(token), certified) => {
                let holder = self.tokens.find(token.expose().as_bytes());
                let holder = holder.and_then(|holder| self.holders.get(holder));
                let holder = holder.ok_or(AccessError::Unknown)?;
                // A stolen token is of no use to another client.
                match certified.is_none_or(|certified| Arc::ptr_eq(certified, holder)) {
                    true => Ok(client(holder)),
                    false => Err(AccessError::Conflict),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Access of a sender of frames, and of one of lines, without a token.
    fn is_open(toml: &str, frames: &str, lines: &str) -> [bool; 2] {
        let mut config = Config::from_toml(toml).unwrap();
        config.ingest.frames_address = frames.parse().unwrap();
        config.ingest.lines_address = lines.parse().unwrap();
        let tokens = SenderTokens::new(&config.claims, &config.ingest);
        [Protocol::Frames, Protocol::Lines].map(|it| tokens.identify(it, None, None).is_ok())
    }

    #[test]
    fn each_port_beyond_loopback_needs_a_token() {
        let client = "[[client]]\nname = \"a\"\ntoken = \"tg_0123456789abcdef\"\n";
        for toml in ["", client] {
            assert_eq!(is_open(toml, "127.0.0.1:1", "[::1]:1"), [true, true]);
            assert_eq!(is_open(toml, "10.0.0.1:1", "127.0.0.1:1"), [false, true]);
            assert_eq!(is_open(toml, "[::ffff:127.0.0.1]:1", "0.0.0.0:1"), [true, false]);
        }
        let always = format!("{client}[ingest]\ntokens_required = true\n");
        assert_eq!(is_open(&always, "127.0.0.1:1", "127.0.0.1:1"), [false, false]);
    }

    #[test]
    fn requiring_tokens_that_nobody_has_is_an_error() {
        let errors = Config::from_toml("[ingest]\ntokens_required = true\n").unwrap_err();
        assert!(errors.to_string().contains("nobody could send"), "{errors}");
    }
}
