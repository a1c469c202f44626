use super::Unauthorized;
use crate::config::{CertificateName, TokenDigest};
use crate::http::request::values;
use crate::http::tls::PeerCertificate;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request};
use std::collections::HashMap;

/// The older header with a client's token. It is for this hop and never passed on.
pub const TOKEN_HEADER: &str = "tidegate-token";

/// The header in which some SDKs send their key.
pub const API_KEY_HEADER: &str = "x-api-key";

/// Start of every token that `tidegate token new` prints. A bearer token with it is this gateway's, known or not,
/// and never meant for an upstream.
pub const TOKEN_PREFIX: &str = "tg_";

/// The holders of tokens by the digests of these, and the holders of client certificates by their names.
#[derive(Debug, Default)]
pub struct Tokens<H> {
    holders: HashMap<TokenDigest, H>,
    certified: HashMap<CertificateName, H>,
}

/// The headers of a request that have a token of this gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFields {
    /// `Authorization`.
    pub authorization: bool,
    /// `x-api-key`.
    pub api_key: bool,
}

/// The identity that a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown<H> {
    /// The holder of the token, else of the certificate of the connection; `None` without either, and for a bearer
    /// token that may be an upstream's.
    pub holder: Option<H>,
    /// The headers that have a token of this gateway.
    pub fields: TokenFields,
    /// The `Authorization` header has a bearer token that this gateway does not know.
    pub foreign_bearer: bool,
}

// === impl Tokens ===

impl<H: Copy + PartialEq> Tokens<H> {
    /// A table of these holders.
    pub fn new(holders: impl IntoIterator<Item = (TokenDigest, H)>) -> Self {
        Self { holders: holders.into_iter().collect(), certified: HashMap::new() }
    }

    /// The same with holders of certificates.
    #[must_use]
    pub fn certified(self, holders: impl IntoIterator<Item = (CertificateName, H)>) -> Self {
        Self { certified: holders.into_iter().collect(), ..self }
    }

    /// Returns true if nobody is known, by a token or by a certificate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.certified.is_empty()
    }

    /// The identity that a request shows: by its token, by the certificate of its connection, or by both if these
    /// are of the same holder.
    ///
    /// # Errors
    ///
    /// When a token that can only be meant for this gateway is unknown, or token and certificate have different
    /// holders.
    pub(super) fn shown<B>(&self, request: &Request<B>) -> Result<Shown<H>, Unauthorized> {
        let shown = self.shown_token(request.headers())?;
        if self.certified.is_empty() {
            return Ok(shown);
        }
        let names = request.extensions().get().map_or(&[][..], PeerCertificate::names);
        match (shown.holder, self.certified_holder(names)?) {
            // A stolen token is of no use to another client.
            (Some(one), Some(other)) if one != other => Err(Unauthorized::Conflict),
            (token, certificate) => Ok(Shown { holder: token.or(certificate), ..shown }),
        }
    }

    /// The holder of a certificate with these names.
    ///
    /// # Errors
    ///
    /// When they are the names of two: such a certificate is nobody's.
    pub(crate) fn certified_holder(
        &self,
        names: &[CertificateName],
    ) -> Result<Option<H>, Unauthorized> {
        let mut holders = names.iter().filter_map(|name| self.certified.get(name).copied());
        holders.try_fold(None, |one, next| match one {
            Some(one) if one != next => Err(Unauthorized::Conflict),
            _ => Ok(Some(next)),
        })
    }

    /// The token in the head of a request. `tidegate-token` decides who asks where both headers have one:
    /// `Authorization` then may be for the upstream.
    ///
    /// # Errors
    ///
    /// When a token that can only be meant for this gateway is unknown.
    fn shown_token(&self, headers: &HeaderMap) -> Result<Shown<H>, Unauthorized> {
        let fields = TokenFields::default();
        let mut shown = Shown { holder: None, fields, foreign_bearer: false };
        // Where no tokens were given out, one means nothing: not even its digest is computed.
        if self.holders.is_empty() {
            return Ok(shown);
        }
        let mut unknown = false;
        for bearer in values(headers, &AUTHORIZATION).filter_map(|value| bearer(value.as_bytes())) {
            let holder = self.find(bearer);
            let is_own = holder.is_some() || bearer.starts_with(TOKEN_PREFIX.as_bytes());
            shown.holder = shown.holder.or(holder);
            shown.fields.authorization |= is_own;
            shown.foreign_bearer |= !is_own;
            unknown |= is_own && holder.is_none();
        }
        if let Some(key) = headers.get(API_KEY_HEADER) {
            let holder = self.find(key.as_bytes());
            shown.fields.api_key =
                holder.is_some() || key.as_bytes().starts_with(TOKEN_PREFIX.as_bytes());
            shown.holder = shown.holder.or(holder);
            unknown |= shown.fields.api_key && holder.is_none();
        }
        if let Some(token) = headers.get(TOKEN_HEADER) {
            shown.holder = Some(self.find(token.as_bytes()).ok_or(Unauthorized::Unknown)?);
        } else if unknown && shown.holder.is_none() {
            return Err(Unauthorized::Unknown);
        }
        Ok(shown)
    }

    /// The holder of a token, if it is known.
    #[must_use]
    pub fn find(&self, token: &[u8]) -> Option<H> {
        self.holders.get(&TokenDigest::of(token)).copied()
    }
}

// === impl Shown ===

impl<H> Shown<H> {
    /// The error where a holder is needed and there is none.
    pub fn without_holder(&self) -> Unauthorized {
        if self.foreign_bearer { Unauthorized::Unknown } else { Unauthorized::Missing }
    }
}

/// The token of a value of `Authorization`, if its scheme is Bearer. A value without a scheme is one too: clients
/// forget it, and their token must not pass for the key of an upstream.
pub(crate) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let value = value.trim_ascii();
    let Some(end) = value.iter().position(is_space) else { return Some(value) };
    let (scheme, token) = (&value[..end], value[end..].trim_ascii());
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn tokens() -> Tokens<u8> {
        let holders = [("a-token", 1), ("b-token", 2)];
        Tokens::new(holders.map(|(token, id)| (TokenDigest::of(token.as_bytes()), id)))
    }

    fn head(fields: &[(&'static str, &str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in fields {
            request.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
        }
        request
    }

    fn shown(fields: &[(&'static str, &str)]) -> Result<Shown<u8>, Unauthorized> {
        tokens().shown(&head(fields))
    }

    fn told(holder: Option<u8>, authorization: bool, foreign_bearer: bool) -> Shown<u8> {
        Shown { holder, fields: TokenFields { authorization, api_key: false }, foreign_bearer }
    }

    #[test]
    fn a_token_is_found_in_either_header() {
        let auth = "authorization";
        assert_eq!(shown(&[]), Ok(told(None, false, false)));
        assert_eq!(shown(&[(auth, "Bearer a-token")]), Ok(told(Some(1), true, false)));
        assert_eq!(shown(&[(auth, "bEARER  b-token")]), Ok(told(Some(2), true, false)));
        assert_eq!(shown(&[(TOKEN_HEADER, "a-token")]), Ok(told(Some(1), false, false)));
        assert_eq!(shown(&[(auth, "Basic a-token")]), Ok(told(None, false, false)));
        assert_eq!(shown(&[(auth, "Bearer sk-upstream")]), Ok(told(None, false, true)));
        assert_eq!(shown(&[(auth, "Bearer\ta-token")]), Ok(told(Some(1), true, false)));
        let of_key = |api_key| TokenFields { api_key, ..TokenFields::default() };
        let key = |holder, has| Ok(Shown { fields: of_key(has), ..told(holder, false, false) });
        assert_eq!(shown(&[(API_KEY_HEADER, "a-token")]), key(Some(1), true));
        assert_eq!(shown(&[(API_KEY_HEADER, "sk-upstream")]), key(None, false));
        for revoked in [(auth, "tg_revoked"), (API_KEY_HEADER, "tg_revoked")] {
            assert_eq!(shown(&[revoked]), Err(Unauthorized::Unknown));
        }
        assert_eq!(shown(&[(TOKEN_HEADER, "guess")]), Err(Unauthorized::Unknown));
        assert_eq!(shown(&[(auth, "Bearer tg_revoked")]), Err(Unauthorized::Unknown));
    }

    #[test]
    fn a_certificate_names_its_holder_and_a_token_must_agree() {
        let name = |text: &str| text.parse::<CertificateName>().unwrap();
        let tokens = tokens().certified([(name("DNS:a"), 1), (name("URI:x:b"), 2)]);
        let shown = |names: &[&str], fields: &[(&'static str, &str)]| {
            let mut request = head(fields);
            let names: Vec<_> = names.iter().map(|text| name(text)).collect();
            request.extensions_mut().insert(PeerCertificate::with_names(names));
            tokens.shown(&request)
        };
        assert_eq!(shown(&["DNS:a", "DNS:c"], &[]), Ok(told(Some(1), false, false)));
        assert_eq!(shown(&["DNS:c"], &[]), Ok(told(None, false, false)));
        let a = [("authorization", "Bearer a-token")];
        assert_eq!(shown(&["DNS:a"], &a), Ok(told(Some(1), true, false)));
        assert_eq!(shown(&["DNS:c"], &a), Ok(told(Some(1), true, false)));
        assert_eq!(shown(&["URI:x:b"], &a), Err(Unauthorized::Conflict));
        assert_eq!(shown(&["DNS:a", "URI:x:b"], &[]), Err(Unauthorized::Conflict));
        let upstreams = [("authorization", "Bearer sk-upstream")];
        assert_eq!(shown(&["DNS:a"], &upstreams), Ok(told(Some(1), false, true)));
        let revoked = [("authorization", "Bearer tg_revoked")];
        assert_eq!(shown(&["DNS:a"], &revoked), Err(Unauthorized::Unknown));
        assert_eq!(tokens.shown(&head(&[])), Ok(told(None, false, false)));
    }

    #[test]
    fn both_headers_are_a_client_and_a_key_of_an_upstream() {
        let both = [(TOKEN_HEADER, "a-token"), ("authorization", "Bearer sk-upstream")];
        assert_eq!(shown(&both), Ok(told(Some(1), false, true)));
        let two = [("authorization", "Bearer sk-upstream"), ("authorization", "Bearer b-token")];
        assert_eq!(shown(&two), Ok(told(Some(2), true, true)), "none of them may be passed on");
        let revoked = [(TOKEN_HEADER, "a-token"), ("authorization", "Bearer tg_revoked")];
        assert_eq!(shown(&revoked), Ok(told(Some(1), true, false)));
    }
}
