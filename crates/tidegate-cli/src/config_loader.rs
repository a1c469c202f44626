use crate::failure::Failure;
use crate::logging;
use crate::settings_flags::SettingFlags;
use crate::terminal::shell_path;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tidegate_server::config::{CONFIG_VARIABLE, ConfigErrors, Loaded, Loader};
use tidegate_server::http::check_tls_files;

/// Default configuration file, read if it exists.
const DEFAULT_FILE: &str = "tidegate.toml";

/// Configuration and its file.
pub struct LoadedConfig {
    pub loaded: Loaded,
    pub file: Option<PathBuf>,
}

/// A configuration file with its permission bits.
struct ConfigFile {
    path: PathBuf,
    contents: String,
    mode: u32,
}

/// Loads the configuration from file, environment and flags.
pub fn load(file: Option<&Path>, settings: &SettingFlags) -> Result<LoadedConfig, Failure> {
    let (config, errors) = load_with_errors(file, settings)?;
    errors.map_or(Ok(config), |errors| Err(errors.into()))
}

/// Loads the configuration although it may have errors, which the next load reports.
pub fn load_lenient(file: Option<&Path>, settings: &SettingFlags) -> Result<LoadedConfig, Failure> {
    load_with_errors(file, settings).map(|(config, _)| config)
}

/// Loads the configuration of a whole node, and checks the TLS files that it names: their errors are reported
/// together with those of the configuration.
///
/// `presets` are values of settings that no layer gives.
pub fn load_node(
    file: Option<&Path>,
    settings: &SettingFlags,
    presets: &[(&str, &str)],
) -> Result<LoadedConfig, Failure> {
    let (given, _) = load_with_errors(file, settings)?;
    let is_given = |key: &str| {
        let mut origins = given.loaded.origins.iter();
        origins.any(|effective| effective.key == key && effective.origin.is_explicit())
    };
    let unset = presets.iter().filter(|(key, _)| !is_given(key));
    let settings = unset
        .fold(settings.clone(), |settings, (key, value)| settings.with("the command", key, value));
    let (config, errors) = load_with_errors(file, &settings)?;
    let tls = check_tls_files(&config.loaded.config).err().map(|errors| errors.to_string());
    let errors = errors.map(|errors| errors.to_string()).into_iter().chain(tls);
    let errors: Vec<String> = errors.collect();
    if errors.is_empty() { Ok(config) } else { Err(Failure::Usage(errors.join("\n"))) }
}

fn load_with_errors(
    file: Option<&Path>,
    settings: &SettingFlags,
) -> Result<(LoadedConfig, Option<ConfigErrors>), Failure> {
    let mut loader = Loader::new().env(environment());
    let file = chosen_file(file)?;
    if let Some(file) = &file {
        loader = loader.file(file.path.display().to_string(), &file.contents).file_mode(file.mode);
    }
    for typed in settings.typed() {
        loader = loader.flag(&typed.flag, &typed.key, &typed.value);
    }
    let (loaded, errors) = loader.load_with_errors();
    let errors = errors.or_else(|| logging::check(&loaded).err());
    Ok((LoadedConfig { loaded, file: file.map(|file| file.path) }, errors))
}

/// Environment with lossy UTF-8: a setting that is not UTF-8 is then reported as an error.
fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |os: std::ffi::OsString| os.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// The file. A file that is named must exist.
fn chosen_file(flag: Option<&Path>) -> Result<Option<ConfigFile>, Failure> {
    let variable = || std::env::var_os(CONFIG_VARIABLE).map(PathBuf::from);
    if let Some(path) = flag {
        return read(path, "").map(Some);
    }
    if let Some(path) = variable() {
        let named_by = format!(", which {CONFIG_VARIABLE} names");
        return read(&path, &named_by).map(Some);
    }
    let path = PathBuf::from(DEFAULT_FILE);
    if !path.exists() {
        return Ok(None);
    }
    read(&path, "").map(Some)
}

fn read(path: &Path, named_by: &str) -> Result<ConfigFile, Failure> {
    ConfigFile::read(path).map_err(|error| {
        let shown = path.display();
        Failure::Usage(match error.kind() {
            ErrorKind::NotFound => format!(
                "there is no configuration file {shown}{named_by}; make one with: tidegate config init {}",
                shell_path(path)
            ),
            ErrorKind::InvalidData => {
                format!("the configuration file {shown}{named_by} is not UTF-8 text")
            }
            _ => format!("can't read the configuration file {shown}{named_by}: {error}"),
        })
    })
}

// === impl ConfigFile ===

impl ConfigFile {
    /// Reads the file and the mode of what was read: by name, both could be of different files.
    fn read(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mode = file.metadata()?.permissions().mode();
        let mut contents = String::new();
        file.read_to_string(&mut contents)?;
        Ok(Self { path: path.to_owned(), contents, mode })
    }
}
