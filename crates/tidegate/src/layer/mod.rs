//! Admission and concurrency limits as tower layers for HTTP services.
//!
//! May use the decisions of `tidegate-core`, `http` and tower's traits. Must not know a runtime.
//!
//! [`AdmissionLayer`] classifies each request and asks the tracker. An admitted request goes on to the inner
//! service; a refused one gets the response of the caller's closure, and the layer adds `retry-after` (seconds)
//! and `retry-after-ms` from the measured rate at which requests end. A permit lives until the body of
//! the response has ended: a stream occupies its slot for as long as it flows. [`AdaptiveLimitLayer`] does the
//! same with a concurrency limit that finds itself, without priorities.
//!
//! | event | outcome of the permit |
//! |---|---|
//! | the body ended | success |
//! | the service or the body failed | dropped |
//! | the future or the body was dropped before its end: the client left, a timeout, a panic | ignored |
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response, StatusCode, header};
//! use http_body_util::{BodyExt, Full};
//! use std::convert::Infallible;
//! use std::sync::Arc;
//! use tidegate::layer::AdmissionLayer;
//! use tidegate::{InFlightTracker, MessagePriority, PriorityLimits, Refusal, Sharing};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! type Body = Full<Bytes>;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let limits = PriorityLimits { low: 1, ..PriorityLimits::default() };
//! let tracker = Arc::new(InFlightTracker::new(limits, Sharing::Strict));
//! let layer = AdmissionLayer::new(
//!     Arc::clone(&tracker),
//!     |request: &Request<Body>| match request.uri().path() {
//!         "/report" => MessagePriority::Low,
//!         _ => MessagePriority::Normal,
//!     },
//!     |refusal: Refusal| {
//!         let mut response = Response::new(Body::from(refusal.to_string()));
//!         *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
//!         response
//!     },
//! );
//! let service = layer.layer(service_fn(async |_request: Request<Body>| {
//!     Ok::<_, Infallible>(Response::new(Body::from("done")))
//! }));
//! let report = || Request::get("/report").body(Body::default()).expect("a valid request");
//!
//! let first = service.clone().oneshot(report()).await.expect("infallible");
//! let second = service.clone().oneshot(report()).await.expect("infallible");
//! assert_eq!(first.status(), StatusCode::OK);
//! assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE, "the first has not been read yet");
//! assert!(second.headers().contains_key(header::RETRY_AFTER));
//!
//! let answer = first.into_body().collect().await.expect("infallible").to_bytes();
//! assert_eq!(answer, "done");
//! assert_eq!(tracker.stats().low_in_flight, 0);
//! # }
//! ```

mod adaptive_limit;
mod body;
mod future;
mod guard;
mod retry_after;
mod service;
mod shared_limit;

pub use adaptive_limit::{AdaptiveLimitLayer, AdaptiveLimitService};
pub use body::AdmittedBody;
pub use future::AdmissionFuture;
pub use service::{AdmissionLayer, AdmissionService};
