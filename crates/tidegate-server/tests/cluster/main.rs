//! Clusters: joining, the trust between nodes, and membership on real sockets and threads.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "../../../tidegate/tests/support/folder.rs"]
mod folder;

mod bed;
mod cluster_node;
mod joining;
mod load;
mod membership;
mod packets;
mod relay;
mod sessions;
