//! The typed schema: settings with key, type, unit, range, default, documentation, environment names and flag.
//! Uses values, origins and errors.
//! Must not know which sections, lists and layers exist.

mod list;
mod record;
mod setting;

pub use list::{AnyList, List, ListField};
pub(in crate::config) use record::record;
pub use setting::{AnySetting, Record, Setting, State, env_name};
