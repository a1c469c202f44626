use super::flags::{AccessFlags, Tls};
use crate::failure::Failure;
use tidegate_server::config::{TlsFiles, TokenDigest};
use tidegate_server::tasks::executor::WorkerAccess;

/// Variable with the token that managers must send.
pub const TOKEN_VARIABLE: &str = "TIDEGATE_WORKER_TOKEN";
/// Length of a token, as in the configuration of a node.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 16..=512;

/// Access to the port, by the flags and the environment.
pub fn access(flags: &AccessFlags) -> Result<WorkerAccess, Failure> {
    let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    access_with(flags, token.as_deref())
}

fn access_with(flags: &AccessFlags, token: Option<&str>) -> Result<WorkerAccess, Failure> {
    let files = flags.tls_cert.clone().zip(flags.tls_key.clone());
    let plain_text = flags.tls == Tls::Off;
    if plain_text && files.is_some() {
        return Err(Failure::Usage("--tls off: given beside --tls-cert; leave one out".to_owned()));
    }
    let client_ca = flags.tls_client_ca.clone();
    let tls = files.map(|(cert, key)| TlsFiles { cert, key, client_ca });
    let token = match (token.map(str::trim), flags.token_sha256) {
        (Some(_), Some(_)) => {
            let both = format!("--token-sha256: given beside {TOKEN_VARIABLE}; leave one out");
            return Err(Failure::Usage(both));
        }
        (Some(token), None) => Some(digest(token)?),
        (None, digest) => digest,
    };
    Ok(WorkerAccess { tls, plain_text, token })
}

fn digest(token: &str) -> Result<TokenDigest, Failure> {
    let is_token =
        TOKEN_CHARS.contains(&token.len()) && token.bytes().all(|b| b.is_ascii_graphic());
    match is_token {
        true => Ok(TokenDigest::of(token.as_bytes())),
        false => Err(Failure::Usage(format!(
            "{TOKEN_VARIABLE}: given {} characters; allowed: 16 … 512 visible ASCII characters without spaces",
            token.chars().count()
        ))),
    }
}
