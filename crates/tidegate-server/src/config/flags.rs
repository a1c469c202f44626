use super::schema::AnySetting;
use super::table::Table;
use std::fmt::Write;

/// A flag of the command line that sets a key of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigFlag {
    /// The flag without dashes, such as `high-limit`.
    pub name: &'static str,
    /// The key it sets, such as `admission.high_limit`.
    pub key: String,
    /// The placeholder of its value in help texts. Default the flag's name.
    pub value_name: Option<&'static str>,
    /// False if the flag takes no value and means `implied`.
    pub takes_value: bool,
    /// The value of the flag without one.
    pub implied: Option<&'static str>,
    /// True for a list: the flag may be repeated.
    pub repeats: bool,
    /// Documentation with range, unit and default.
    pub help: String,
}

/// Every flag that sets a key, lists first.
#[must_use]
pub fn config_flags() -> Vec<ConfigFlag> {
    let table = Table::new();
    let lists = table.lists().into_iter().filter_map(|list| {
        let (field, sample) = (list.field(), list.sample());
        let allowed = sample.settings().first()?.state().limits.allowed.clone();
        Some(ConfigFlag {
            name: field.flag?,
            key: field.key.to_owned(),
            value_name: Some("URL"),
            takes_value: true,
            implied: None,
            repeats: true,
            help: format!("{} May be repeated [{allowed}]", field.doc),
        })
    });
    let settings = table.settings().into_iter();
    let settings = settings.flat_map(|setting| [ConfigFlag::of(setting), ConfigFlag::off(setting)]);
    lists.chain(settings.flatten()).collect()
}

impl ConfigFlag {
    fn of(setting: &dyn AnySetting) -> Option<Self> {
        let field = setting.state();
        // A switch that is off by default is turned on by its flag alone.
        let takes_value = setting.shown() != Some(toml::Value::Boolean(false));
        let is_switch = matches!(setting.shown(), Some(toml::Value::Boolean(_)));
        let implied = is_switch.then_some("true");
        let mut help = field.doc.trim_end_matches('.').to_owned();
        if takes_value {
            let default = setting.default_note().map(|default| format!(" [default: {default}]"));
            let _ = write!(help, " [{}]{}", field.limits.allowed, default.unwrap_or_default());
        }
        let (name, key, value_name) =
            (field.names.flag?, field.key.clone(), field.limits.placeholder);
        Some(Self { name, key, value_name, takes_value, implied, repeats: false, help })
    }

    /// The flag that turns a switch off.
    fn off(setting: &dyn AnySetting) -> Option<Self> {
        let (names, key) = (setting.state().names, setting.state().key.clone());
        Some(Self {
            name: names.off_flag?,
            help: format!("Short for --{} false, and wins over it", names.flag?),
            key,
            value_name: None,
            takes_value: false,
            implied: Some("false"),
            repeats: false,
        })
    }
}
