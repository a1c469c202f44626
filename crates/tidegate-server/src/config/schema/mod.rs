//! Which keys there are, with type, unit, range, default and documentation.

mod lists;
mod lookup;
mod make;
mod settings;

pub use lists::LISTS;
pub(super) use lookup::{
    CONFIG_VARIABLE, env_name_is_setting, known_keys, list, sections, setting,
};
pub use settings::SETTINGS;
