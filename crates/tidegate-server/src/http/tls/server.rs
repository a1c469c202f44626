use super::certificate::validity;
use super::error::{TlsSetupError, noted};
use super::pem::{certificates, private_key};
use super::provider::provider;
use crate::config::TlsFiles;
use jiff::Timestamp;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// The TLS of a server, and the time until which its certificate is valid.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Arc<ServerConfig>,
    pub not_after: Timestamp,
}

/// Reads and checks the files of a server that offers these protocols.
///
/// # Errors
///
/// Everything that is wrong with them, not only the first.
pub fn load(
    files: &TlsFiles,
    protocols: &[&[u8]],
    now: Timestamp,
) -> Result<Loaded, Vec<TlsSetupError>> {
    let mut errors = Vec::new();
    let chain = noted(certificates(&files.cert, "a certificate chain"), &mut errors);
    let validity = chain.as_deref().and_then(|chain| {
        let validity = noted(validity(&files.cert, chain), &mut errors)?;
        noted(validity.check(&files.cert, now), &mut errors).map(|()| validity)
    });
    let key = noted(private_key(&files.key), &mut errors);
    let verifier = match &files.client_ca {
        Some(path) => noted(client_verifier(path), &mut errors).map(Some),
        None => Some(None),
    };
    // A pair that does not fit is told beside the rest too.
    let (Some(chain), Some(key)) = (chain, key) else { return Err(errors) };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| vec![TlsSetupError::Provider(error)])?;
    let builder = match verifier.clone().flatten() {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(chain, key).map_err(|source| TlsSetupError::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        source,
    });
    match (noted(config, &mut errors), validity, verifier) {
        (Some(mut config), Some(validity), Some(_)) if errors.is_empty() => {
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            Ok(Loaded { config: Arc::new(config), not_after: validity.not_after })
        }
        _ => Err(errors),
    }
}

fn client_verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsSetupError> {
    let unusable = |reason: String| TlsSetupError::Authorities { path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for authority in certificates(path, "certificate authorities")? {
        roots.add(authority).map_err(|error| unusable(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map(|verifier| verifier as Arc<dyn ClientCertVerifier>)
        .map_err(|error| unusable(error.to_string()))
}
