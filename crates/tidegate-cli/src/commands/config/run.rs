use super::flags::ConfigCommand;
use crate::config_loader::{self, LoadedConfig};
use crate::failure::Failure;
use crate::output_file;
use crate::settings_flags::SettingFlags;
use crate::terminal::shell_path;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use tidegate_server::config::{Config, init_file, show_json, show_text};

/// `tidegate config …`.
pub fn run(command: &ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Init { path, force } => init(path, *force),
        ConfigCommand::Check { target, file, settings } => {
            check(target.as_deref().or(file.path.as_deref()), settings)
        }
        ConfigCommand::Show { file, settings, json } => {
            let origins = config_loader::load(file.path.as_deref(), settings)?.loaded.origins;
            print(&if *json { format!("{:#}\n", show_json(&origins)) } else { show_text(&origins) })
        }
    }
}

fn init(path: &Path, force: bool) -> Result<(), Failure> {
    if path == Path::new("-") {
        return print(&init_file());
    }
    let shown = path.display();
    let written = output_file::create(path, force)
        .and_then(|mut file| file.write_all(init_file().as_bytes()));
    written.map_err(|error| {
        Failure::Runtime(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!(
                    "{shown} already exists; --force overwrites it, and - prints to standard output"
                )
            }
            _ => format!("can't write {shown}: {error}"),
        })
    })?;
    let word = shell_path(path);
    print(&format!("wrote {shown}; check it after changes: tidegate config check {word}\n"))
}

fn check(path: Option<&Path>, settings: &SettingFlags) -> Result<(), Failure> {
    let LoadedConfig { loaded, file } = config_loader::load_node(path, settings, &[])?;
    let source = file.map_or("no file".to_owned(), |path| path.display().to_string());
    print(&format!("ok: {source}: {}\n", summary(&loaded.config)))
}

fn summary(config: &Config) -> String {
    let limits = config.admission.limits;
    format!(
        "{:?} on {} with {}, {} and {}; at most {} in flight (high {}, normal {}, low {})",
        config.role,
        config.listen.address,
        count(config.upstreams.len(), "upstream"),
        count(config.claims.clients.len(), "client"),
        count(config.routes.len(), "route"),
        limits.global_limit,
        limits.high,
        limits.normal,
        limits.low,
    )
    .to_lowercase()
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Prints to standard output. A closed pipe, such as that of `head`, is not a failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Runtime(format!("can't write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
