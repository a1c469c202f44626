//! Tasks in a folder of this machine.

mod draft;
mod engine;
mod list;
mod read;
mod row;
mod store;
mod writer;

pub use store::FjallTaskStore;
