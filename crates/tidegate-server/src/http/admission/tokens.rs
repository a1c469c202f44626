use super::Unauthorized;
use crate::config::TokenDigest;
use crate::http::request::values;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::HashMap;

/// The older header with a client's token. It is for this hop and never passed on.
pub const TOKEN_HEADER: &str = "tidegate-token";

/// Start of every token that `tidegate token new` prints. A bearer token with it is this gateway's, known or not,
/// and never meant for an upstream.
pub const TOKEN_PREFIX: &str = "tg_";

/// The holders of tokens, by the digests of these.
#[derive(Debug)]
pub(super) struct Tokens<H> {
    holders: HashMap<TokenDigest, H>,
}

/// The token that a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown<H> {
    /// The holder of the token; `None` without a token, and for a bearer token that may be an upstream's.
    pub holder: Option<H>,
    /// The `Authorization` header has a token of this gateway.
    pub in_authorization: bool,
    /// The `Authorization` header has a bearer token that this gateway does not know.
    pub foreign_bearer: bool,
}

// === impl Tokens ===

impl<H: Copy> Tokens<H> {
    pub fn new(holders: impl IntoIterator<Item = (TokenDigest, H)>) -> Self {
        Self { holders: holders.into_iter().collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// The token in the head of a request. `tidegate-token` decides who asks where both headers have one:
    /// `Authorization` then may be for the upstream.
    ///
    /// # Errors
    ///
    /// When a token that can only be meant for this gateway is unknown.
    pub fn shown(&self, headers: &HeaderMap) -> Result<Shown<H>, Unauthorized> {
        let mut shown = Shown { holder: None, in_authorization: false, foreign_bearer: false };
        // Where no tokens were given out, one means nothing: not even its digest is computed.
        if self.is_empty() {
            return Ok(shown);
        }
        let mut unknown = false;
        for bearer in values(headers, &AUTHORIZATION).filter_map(|value| bearer(value.as_bytes())) {
            let holder = self.find(bearer);
            let is_own = holder.is_some() || bearer.starts_with(TOKEN_PREFIX.as_bytes());
            shown.holder = shown.holder.or(holder);
            shown.in_authorization |= is_own;
            shown.foreign_bearer |= !is_own;
            unknown |= is_own && holder.is_none();
        }
        if let Some(token) = headers.get(TOKEN_HEADER) {
            shown.holder = Some(self.find(token.as_bytes()).ok_or(Unauthorized::Unknown)?);
        } else if unknown && shown.holder.is_none() {
            return Err(Unauthorized::Unknown);
        }
        Ok(shown)
    }

    fn find(&self, token: &[u8]) -> Option<H> {
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

/// The token of a value of `Authorization`, if its scheme is Bearer.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"bearer".len())?;
    let token = rest.strip_prefix(b" ")?.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
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

    fn told(holder: Option<u8>, in_authorization: bool, foreign_bearer: bool) -> Shown<u8> {
        Shown { holder, in_authorization, foreign_bearer }
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
