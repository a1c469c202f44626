//! Values of settings: input of the layers, kinds, shapes of texts, and the Rust types they become.
//! Uses origins and errors of the configuration, and the enums of `tidegate`.
//! Must not know which settings exist.

mod certificate_name;
mod choice;
mod kind;
mod limit;
mod normal_path;
mod raw;
mod secret;
pub mod shape;
mod upstream_url;

pub use certificate_name::CertificateName;
pub(in crate::config) use choice::choices;
pub use choice::{Choice, name_of};
pub use kind::*;
pub use limit::LimitSetting;
pub use normal_path::NormalPath;
pub use raw::{Raw, masked};
pub use secret::{ApiKey, TokenDigest};
pub use upstream_url::{Scheme, UpstreamTarget};
