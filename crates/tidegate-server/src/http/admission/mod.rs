//! Admission of HTTP requests: priorities and clients by their heads, limits, shares and retry advice.
//! Uses the in-flight tracker of the library, the types of refusals, and settings.
//! Must not know upstreams, tasks, or what becomes of an admitted request.

mod admit;
mod classifier;
mod client_share;
mod retry_board;
mod route_match;
mod tokens;
mod unauthorized;

pub use admit::{Admission, Permits};
pub use classifier::{Claim, Classified, Classifier, Flow};
pub use client_share::ClientShare;
pub use retry_board::RetryBoard;
pub(crate) use tokens::bearer;
pub use tokens::{API_KEY_HEADER, TOKEN_HEADER, TOKEN_PREFIX, TokenFields, Tokens};
pub use unauthorized::Unauthorized;
