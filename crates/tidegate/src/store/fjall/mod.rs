//! A store in a folder of this machine.

mod block;
mod checkpoint;
mod engine;
pub(crate) mod folder;
mod key;
mod read;
mod retain;
mod store;
pub(crate) mod tables;
pub(crate) mod view;
mod writer;

pub use store::FjallStore;
