use super::error::ClusterError;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData,
    SignatureAlgorithm,
};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::request::CertReq;

/// The algorithms of a key and of a signature: ECDSA with SHA-256 on P-256, the one kind of key that nodes have.
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
/// Length of a point of P-256, uncompressed, and its first byte.
const POINT_BYTES: usize = 65;
const UNCOMPRESSED: u8 = 4;

/// Public key of a certificate request whose sender has proven to have the private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedKey(Vec<u8>);

/// Request for a certificate of this key, in DER. It names nothing: the authority decides about the content.
///
/// # Errors
///
/// When the system gives no random bytes.
pub fn certificate_request(key: &KeyPair) -> Result<Vec<u8>, ClusterError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(key)?.der().to_vec())
}

// === impl RequestedKey ===

impl RequestedKey {
    /// The key of a request, after its signature is checked. Everything else in the request is left out.
    ///
    /// # Errors
    ///
    /// When it is no request, its key is not one of P-256, or its signature is not of this key.
    pub fn of_request(der: &[u8]) -> Result<Self, ClusterError> {
        let refused = ClusterError::Request;
        let request = CertReq::from_der(der).map_err(|_| refused("expected PKCS #10 in DER"))?;
        let key = &request.info.public_key;
        let point = key.subject_public_key.as_bytes().unwrap_or_default();
        let is_p256 = key.algorithm.oid == EC_PUBLIC_KEY
            && point.len() == POINT_BYTES
            && point.first() == Some(&UNCOMPRESSED);
        if !is_p256 || request.algorithm.oid != ECDSA_WITH_SHA256 {
            return Err(refused("expected a key of ECDSA P-256, signed with SHA-256"));
        }
        let signed = request.info.to_der().map_err(|_| refused("it can't be encoded"))?;
        let signature = request.signature.as_bytes().unwrap_or_default();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, point)
            .verify(&signed, signature)
            .map_err(|_| refused("its signature is not of its key"))?;
        Ok(Self(point.to_vec()))
    }
}

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_proves_its_key_and_a_changed_one_nothing() {
        let key = KeyPair::generate().unwrap();
        let request = certificate_request(&key).unwrap();
        assert_eq!(RequestedKey::of_request(&request).unwrap().der_bytes(), key.public_key_raw());
        let mut accepted = 0;
        for at in 0..request.len() {
            let mut changed = request.clone();
            changed[at] ^= 1;
            accepted += usize::from(RequestedKey::of_request(&changed).is_ok());
        }
        assert_eq!(accepted, 0);
        let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let request = certificate_request(&ed25519).unwrap();
        assert!(RequestedKey::of_request(&request).unwrap_err().to_string().contains("P-256"));
    }
}
