use clap::parser::MatchesError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use std::path::PathBuf;
use tidegate_server::config::{ConfigFlag, config_flags};

/// Flag that names the configuration file.
#[derive(Debug, Args)]
pub struct FileFlag {
    /// Configuration file [default: TIDEGATE_CONFIG, or ./tidegate.toml if it exists]
    #[arg(long = "config", value_name = "FILE")]
    pub path: Option<PathBuf>,
}

/// Flags that set configuration keys, from the table of the configuration.
///
/// Their values are text: the loader checks them together with the file and the environment, and reports all
/// errors at once.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags(Vec<TypedSetting>);

/// A setting as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedSetting {
    /// The flag, for messages.
    pub flag: String,
    /// The key that it sets.
    pub key: String,
    pub value: String,
}

/// Identifier of the flag that sets any key.
const SET: &str = "set";

impl SettingFlags {
    /// The typed settings in the order of precedence, `--set` last.
    pub fn typed(&self) -> &[TypedSetting] {
        &self.0
    }

    /// The same settings with one more, as if it was typed.
    pub fn with(mut self, flag: &str, key: &str, value: &str) -> Self {
        let (flag, key, value) = (flag.to_owned(), key.to_owned(), value.to_owned());
        self.0.push(TypedSetting { flag, key, value });
        self
    }

    fn read(matches: &ArgMatches) -> Result<Self, MatchesError> {
        let mut typed = Vec::new();
        for ConfigFlag { name, key, .. } in config_flags() {
            for value in matches.try_get_many::<String>(name)?.into_iter().flatten() {
                let (flag, key, value) = (format!("--{name}"), key.clone(), value.clone());
                typed.push(TypedSetting { flag, key, value });
            }
        }
        let set = matches.try_get_many::<(String, String)>(SET)?;
        for (key, value) in set.into_iter().flatten().cloned() {
            typed.push(TypedSetting { flag: format!("--{SET} {key}"), key, value });
        }
        Ok(Self(typed))
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::read(matches)
            .map_err(|error| Error::raw(clap::error::ErrorKind::Io, error.to_string()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let set = Arg::new(SET)
            .long(SET)
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .value_parser(key_and_value)
            .help(
                "Any setting by its key, such as proxy.connect_timeout_ms=500; wins over its flag",
            );
        let flags = config_flags().into_iter().map(argument);
        command.next_help_heading("Settings").args(flags).arg(set)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(flag: ConfigFlag) -> Arg {
    let argument = Arg::new(flag.name)
        .long(flag.name)
        .help(flag.help)
        .action(if flag.repeats { ArgAction::Append } else { ArgAction::Set })
        .allow_negative_numbers(flag.takes_value);
    let argument = match flag.implied {
        Some(implied) if flag.takes_value => {
            argument.num_args(0..=1).default_missing_value(implied)
        }
        Some(implied) => argument.num_args(0).default_missing_value(implied),
        None => argument,
    };
    match flag.value_name {
        Some(name) if flag.takes_value => argument.value_name(name),
        _ => argument,
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or(
        "write KEY=VALUE, such as admission.high_limit=50; `tidegate config show` lists the keys",
    )?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingFlags,
    }

    #[test]
    fn every_flag_of_the_table_is_read_and_set_comes_last() {
        let flags = config_flags();
        let mut words = vec!["tidegate".to_owned(), "--set".to_owned(), "log.level=x=y".to_owned()];
        for flag in &flags {
            words.push(format!("--{}", flag.name));
            words.extend(flag.takes_value.then(|| "-2".to_owned()));
        }
        let Line { settings } = Line::parse_from(words);
        let (last, others) = settings.typed().split_last().unwrap();
        assert_eq!(others.len(), flags.len());
        for (typed, flag) in others.iter().zip(&flags) {
            let value = if flag.takes_value { Some("-2") } else { flag.implied };
            assert_eq!((&typed.key, Some(typed.value.as_str())), (&flag.key, value));
        }
        assert_eq!((last.key.as_str(), last.value.as_str()), ("log.level", "x=y"));
    }

    #[test]
    fn a_switch_is_turned_on_and_off_by_a_flag_alone() {
        let typed = |words: &[&str]| {
            let line = Line::parse_from(std::iter::once(&"tidegate").chain(words));
            let pairs = line.settings.typed().iter();
            pairs.map(|typed| format!("{}={}", typed.key, typed.value)).collect::<Vec<_>>()
        };
        assert_eq!(typed(&["--tasks", "--role", "gate"]), ["role=gate", "tasks.enabled=true"]);
        assert_eq!(typed(&["--tasks", "false"]), ["tasks.enabled=false"]);
        assert_eq!(
            typed(&["--no-tasks", "--ingest"]),
            ["ingest.enabled=true", "tasks.enabled=false"]
        );
        let both = ["tasks.enabled=true", "tasks.enabled=false"];
        assert_eq!(typed(&["--no-tasks", "--tasks"]), both, "the later one counts");
    }
}
