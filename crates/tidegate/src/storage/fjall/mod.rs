//! A folder with a fjall database and one writer thread, opened again after a failed write.
//!
//! May use `fjall` and the file system. Must not know the keyspaces of a store.

mod database;
mod folder;
mod tables;
mod view;
mod writer_thread;

pub(crate) use database::{Database, Engine};
pub(crate) use folder::{Folder, Kind};
pub(crate) use tables::Tables;
pub(crate) use view::View;
pub(crate) use writer_thread::{Reply, Writer, WriterThread};
