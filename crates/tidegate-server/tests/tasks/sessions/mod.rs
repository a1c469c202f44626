//! Workers that dial their manager, over real sockets.

mod bed;
mod faults;
mod flood;
mod joining;
mod late_leases;
mod long_faults;
mod manager_levels;
mod peer_manager;
mod peer_worker;
mod relay;
mod running;
mod saturation;
mod signal_to_effect;
mod truth;
mod worker_levels;
