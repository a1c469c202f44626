use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

/// The cryptography of all TLS.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
