//! Stores of tasks: no task is lost, and none ends twice.
//!
//! May use `storage` and the task types of `tidegate-core`. Must not know executors or how a task is executed.
//!
//! A [`TaskStore`] is a folder of this machine or a PostgreSQL database; [`AnyTaskStore`] is whichever its address
//! says.

// A program that has only one kind of store needs only a part of what they share.
#![cfg_attr(not(all(feature = "fjall", feature = "postgres")), allow(dead_code))]

#[cfg(any(feature = "fjall", feature = "postgres"))]
mod any_store;
mod bounds;
mod claim;
mod codec;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "postgres")]
mod postgres;
mod record;
mod task_store;

pub use crate::storage::{NotAStoreUrl, StoreError, StoreUrl};
#[cfg(any(feature = "fjall", feature = "postgres"))]
pub use any_store::AnyTaskStore;
pub use claim::{Claim, ClaimGroup, Claimed, QueueDepth, StoreHint};
#[cfg(feature = "fjall")]
pub use fjall::FjallTaskStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresTaskStore;
pub use record::{Change, ChangeOutcome, NewTask, Submission, TaskPage, TaskQuery, TaskRecord};
pub use task_store::{Durability, TaskStore};
