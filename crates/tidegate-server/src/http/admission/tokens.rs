use super::Unauthorized;
use crate::config::TokenDigest;
use crate::http::request::values;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::HashMap;

/// The older header with a client's token. It is for this hop and never passed on.
pub const TOKEN_HEADER: &str = "tidegate-token";

/// The header in which some SDKs send their key.
pub const API_KEY_HEADER: &str = "x-api-key";

/// Start of every token that `tidegate token new` prints. A bearer token with it is this gateway's, known or not,
/// and never meant for an upstream.
pub const TOKEN_PREFIX: &str = "tg_";

/// The holders of tokens, by the digests of these.
#[derive(Debug)]
pub struct Tokens<H> {
    holders: HashMap<TokenDigest, H>,
}

/// The headers of a request that have a token of this gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenFields {
    /// `Authorization`.
    pub authorization: bool,
    /// `x-api-key`.
    pub api_key: bool,
}

/// The token that a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown<H> {
    /// The holder of the token; `None` without a token, and for a bearer token that may be an upstream's.
    pub holder: Option<H>,
    /// The headers that have a token of this gateway.
    pub fields: TokenFields,
    /// The `Authorization` header has a bearer token that this gateway does not know.
    pub foreign_bearer: bool,
}

// === impl Tokens ===

impl<H: Copy> Tokens<H> {
    /// A table of these holders.
    pub fn new(holders: impl IntoIterator<Item = (TokenDigest, H)>) -> Self {
        Self { holders: holders.into_iter().collect() }
    }

    /// Returns true if no tokens were given out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// The token in the head of a request. `tidegate-token` decides who asks where both headers have one:
    /// `Authorization` then may be for the upstream.
    ///
    /// # Errors
    ///
    /// When a token that can only be meant for this gateway is unknown.
    pub(super) fn shown(&self, headers: &HeaderMap) -> Result<Shown<H>, Unauthorized> {
        let fields = TokenFields::default();
        let mut shown = Shown { holder: None, fields, foreign_bearer: false };
        // Where no tokens were given out, one means nothing: not even its digest is computed.
        if self.is_empty() {
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

    fn shown(fields: &[(&'static str, &str)]) -> Result<Shown<u8>, Unauthorized> {
        let holders = [("a-token", 1), ("b-token", 2)];
        let tokens =
            Tokens::new(holders.map(|(token, id)| (TokenDigest::of(token.as_bytes()), id)));
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        tokens.shown(&headers)
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
    fn both_headers_are_a_client_and_a_key_of_an_upstream() {
        let both = [(TOKEN_HEADER, "a-token"), ("authorization", "Bearer sk-upstream")];
        assert_eq!(shown(&both), Ok(told(Some(1), false, true)));
        let two = [("authorization", "Bearer sk-upstream"), ("authorization", "Bearer b-token")];
        assert_eq!(shown(&two), Ok(told(Some(2), true, true)), "none of them may be passed on");
        let revoked = [(TOKEN_HEADER, "a-token"), ("authorization", "Bearer tg_revoked")];
        assert_eq!(shown(&revoked), Ok(told(Some(1), true, false)));
    }
}
