//! One request, from its head to the end of its answer.

mod body;
mod client;
mod client_share;
mod error;
mod exchange;
mod forwarded;
mod head;
mod held;
mod hop_by_hop;
mod intake;
mod model_scan;
mod offer;
mod places;
mod placing;
mod priority;
mod rejection;
mod serve;
mod tunnel;
mod upload;

pub use body::{GatewayBody, StreamIdle};
pub use client::ClientContext;
pub use client_share::ClientShare;
pub use error::ProxyError;
pub(crate) use held::Held;
pub use places::{NoPlace, Places, admit};
pub use priority::{Claim, Entrant, Gatekeeper, Unauthorized};
pub use rejection::Rejection;
pub(crate) use serve::read_away;
pub use serve::{is_grpc, serve};
pub use upload::UploadBody;
use upload::UploadWatch;
