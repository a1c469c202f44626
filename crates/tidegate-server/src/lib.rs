//! The gateway: it listens, admits by priority, and proxies to upstreams.

pub mod config;
