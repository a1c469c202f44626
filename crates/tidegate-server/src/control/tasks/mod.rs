//! Tasks over HTTP: handed in, looked at, watched, stopped.

mod answer;
#[cfg(test)]
mod answer_tests;
mod error;
mod events;
mod limits;
mod listing;
mod position;
mod route;
mod submission;
mod teller;

pub use answer::{Door, answer_task};
pub use error::TaskApiError;
pub use events::EventStream;
pub use limits::{TaskTerms, TaskWatchers};
use position::Position;
pub use route::TaskRoute;
