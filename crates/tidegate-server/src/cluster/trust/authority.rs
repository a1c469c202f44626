use super::certificate_request::RequestedKey;
use super::error::ClusterError;
use super::folder::ClusterFolder;
use super::identity::NodeIdentity;
use super::token::{FINGERPRINT_BYTES, fingerprint};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber, date_time_ymd,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tidegate::membership::MemberRole;

const RECORD: &str = "authority.json";
const KEY: &str = "ca.key";
const CERTIFICATE: &str = "ca.pem";
/// Validity of the authority, and of a node's certificate: a node joins again before it ends.
const AUTHORITY_VALID: Duration = Duration::from_secs(10 * 365 * 86_400);
const NODE_VALID: Duration = Duration::from_secs(2 * 365 * 86_400);
/// Time that the clock of another node may be behind.
const CLOCK_SKEW: Duration = Duration::from_secs(300);
const SERIAL_BYTES: usize = 16;

/// Certificate authority of a cluster: signs the certificates of its nodes.
pub struct Authority {
    pem: String,
    fingerprint: [u8; FINGERPRINT_BYTES],
    issuer: Issuer<'static, KeyPair>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorityRecord {
    /// Common name of the authority.
    name: String,
}

// === impl Authority ===

impl Authority {
    /// Makes the authority of a cell, in the folder of its first node.
    ///
    /// # Errors
    ///
    /// When a file can't be written, or the system gives no random bytes.
    pub fn create(folder: &ClusterFolder, cell: &str) -> Result<Self, ClusterError> {
        let key = KeyPair::generate()?;
        let name = format!("tidegate {cell} {}", super::to_hex(&random::<4>()?));
        let mut params = params_of(&name);
        set_valid_for(&mut params, AUTHORITY_VALID);
        params.serial_number = Some(serial()?);
        let pem = params.self_signed(&key)?.pem();
        folder.write(KEY, key.serialize_pem().as_bytes())?;
        folder.write_json(RECORD, &AuthorityRecord { name })?;
        folder.write(CERTIFICATE, pem.as_bytes())?;
        Self::open(folder)
    }

    /// The authority in a folder.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoAuthority`] when the folder has none; else when a file can't be read.
    pub fn open(folder: &ClusterFolder) -> Result<Self, ClusterError> {
        if !folder.path().join(KEY).exists() {
            return Err(ClusterError::NoAuthority);
        }
        let AuthorityRecord { name } = folder.read_json(RECORD)?;
        let (pem, key) = (folder.read(CERTIFICATE)?, KeyPair::from_pem(&folder.read(KEY)?)?);
        let der = CertificateDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|error| folder.content(CERTIFICATE, error.to_string()))?;
        let fingerprint = fingerprint(&der);
        Ok(Self { pem, fingerprint, issuer: Issuer::new(params_of(&name), key) })
    }

    /// Certificate of the authority, in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// SHA-256 of the certificate.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; FINGERPRINT_BYTES] {
        self.fingerprint
    }

    /// Signs the certificate of a node, and returns its chain in PEM. A worker's certificate is one of a client
    /// alone: it can't serve as a manager or a gate.
    ///
    /// # Errors
    ///
    /// When the host is no name of one.
    pub fn sign(
        &self,
        key: &impl PublicKeyData,
        identity: &NodeIdentity,
        host: &str,
    ) -> Result<String, ClusterError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(&identity.node);
        set_valid_for(&mut params, NODE_VALID);
        params.serial_number = Some(serial()?);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.subject_alt_names = vec![SanType::URI(identity.uri().try_into()?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if identity.role != MemberRole::Worker {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
            params.subject_alt_names.extend(hosts(host)?);
        }
        Ok(params.signed_by(key, &self.issuer)?.pem() + &self.pem)
    }

    /// Signs the certificate of a node whose key was requested for.
    ///
    /// # Errors
    ///
    /// When the request is not valid.
    pub fn sign_request(
        &self,
        request: &[u8],
        identity: &NodeIdentity,
        host: &str,
    ) -> Result<String, ClusterError> {
        self.sign(&RequestedKey::of_request(request)?, identity, host)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

fn params_of(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Names by which a server of this host is asked: the host, and the loopback of its own machine.
fn hosts(host: &str) -> Result<Vec<SanType>, ClusterError> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let mut hosts: Vec<SanType> = loopback.map(SanType::IpAddress).to_vec();
    hosts.push(SanType::DnsName("localhost".to_owned().try_into()?));
    match host.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => {}
        Ok(address) => hosts.push(SanType::IpAddress(address)),
        Err(_) if host == "localhost" => {}
        Err(_) => hosts.push(SanType::DnsName(host.to_owned().try_into()?)),
    }
    Ok(hosts)
}

/// Sets the validity: from a little before now.
fn set_valid_for(params: &mut CertificateParams, time: Duration) {
    let now = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
    let at = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    params.not_before = at(now.saturating_sub(CLOCK_SKEW.as_secs()));
    params.not_after = at(now.saturating_add(time.as_secs()));
}

fn random<const N: usize>() -> Result<[u8; N], ClusterError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes)?;
    Ok(bytes)
}

fn serial() -> Result<SerialNumber, ClusterError> {
    let mut bytes = random::<SERIAL_BYTES>()?;
    // Positive, and of full length.
    bytes[0] = (bytes[0] & 0x3f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}
