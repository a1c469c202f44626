//! Configuration: a TOML file, the environment and flags, each overriding the one before, checked all at once.
//! Uses the types of `tidegate`, TOML, HTTP names and a digest.
//! Must not know any other module of this crate, a socket, or the file system.
//!
//! Every setting is declared once, in `sections`, with key, type, unit, range, default and documentation. Layers,
//! checks, `config init`, `config show` and the flags of the command line come from these declarations.

mod checks;
mod errors;
mod exposure;
mod flags;
mod init;
mod layers;
mod loader;
mod origin;
mod policies;
mod renamed;
mod schema;
mod sections;
mod show;
mod state_folder;
mod table;
mod value;

pub use errors::{ConfigError, ConfigErrors};
pub use flags::{ConfigFlag, config_flags};
pub use init::init_file;
pub use loader::{Loaded, Loader};
pub use origin::Origin;
pub use policies::{
    Anonymous, AuthorizationPolicy, ForwardedPolicy, HostPolicy, LoadSource, LocalExecutor,
    LogFormat, NetworkUse, Orca, OverloadStatus, TlsMode,
};
pub use sections::{
    AdmissionConfig, ClaimsConfig, Client, ExecutorEntry, HeaderMatch, Identity, IngestConfig,
    ListenConfig, LogConfig, Operator, ProxyConfig, QueueConfig, RouteRule, RoutingConfig,
    RuntimeEntry, TasksConfig, TlsFiles, WorkersConfig,
};
pub use show::{Effective, show_json, show_text};
pub use table::{CONFIG_VARIABLE, Config};
pub use value::{
    ApiKey, CertificateName, LimitSetting, NormalPath, Scheme, TokenDigest, UpstreamTarget, masked,
};
