//! Certificate authorities and certificates of the tests.

use crate::folder::TempFolder;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// An authority with a folder for what it issues.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub der: CertificateDer<'static>,
    folder: TempFolder,
}

/// A certificate and its key, in PEM files.
#[derive(Clone)]
pub struct Issued {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let cert = params.self_signed(&key).unwrap();
        let folder = TempFolder::new("authority");
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
        Self { issuer: Issuer::new(params, key), der: cert.der().clone(), folder }
    }

    /// The authority's own certificate.
    pub fn bundle(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A certificate for localhost and 127.0.0.1, valid now.
    pub fn issue(&self, name: &str) -> Issued {
        self.issue_with(name, |_| {})
    }

    /// The same with something changed.
    pub fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate().unwrap();
        let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let file = |kind: &str| self.folder.path().join(format!("{name}.{kind}.pem"));
        let issued = Issued { cert: file("cert"), key: file("key") };
        std::fs::write(&issued.cert, cert.pem()).unwrap();
        std::fs::write(&issued.key, key.serialize_pem()).unwrap();
        issued.set_key_mode(0o600);
        issued
    }
}

impl Issued {
    pub fn set_key_mode(&self, mode: u32) {
        set_mode(&self.key, mode);
    }

    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(&self.cert).unwrap()
    }

    /// Takes the place of this pair, each file in one step, as renewals do.
    pub fn replace_by(&self, other: &Self) {
        std::fs::rename(&other.key, &self.key).unwrap();
        std::fs::rename(&other.cert, &self.cert).unwrap();
    }

    /// The section of the configuration that gives it to every port.
    pub fn toml(&self) -> String {
        format!("[tls]\ncert = {:?}\nkey = {:?}\n", self.cert, self.key)
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
