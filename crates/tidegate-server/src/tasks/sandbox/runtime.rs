use super::bubblewrap::SYSTEM;
use super::config::RuntimeConfig;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use std::{env, fs};
use tokio::process::Command;
use tokio::time::timeout;

/// Placeholder for the file with the code in an argument.
const FILE: &str = "{file}";
/// Longest time for an interpreter to report its location.
const LOCATE_WITHIN: Duration = Duration::from_secs(10);
/// Python program that prints its location.
const LOCATE: &str = "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')";
/// `PATH` of tasks.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A runtime with its program.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) config: RuntimeConfig,
    pub(super) program: PathBuf,
    /// Paths that its program needs to read, besides those of every task.
    pub(super) readable: Vec<PathBuf>,
}

// === impl Runtime ===

impl Runtime {
    /// Programs that the runtime's command could mean, in the order of `PATH`.
    pub(super) async fn candidates(config: &RuntimeConfig) -> Vec<Self> {
        let mut found = Vec::new();
        for program in programs(&config.command) {
            let (program, mut readable) = match config.name.as_str() {
                "python" => match locate_python(&program).await {
                    Some(located) => located,
                    None => continue,
                },
                _ => (program, Vec::new()),
            };
            readable.extend(install_folder(&program));
            readable.extend(program.canonicalize().ok().and_then(|real| install_folder(&real)));
            readable.extend(config.readable.iter().cloned());
            readable.retain(|path| !is_system(path));
            readable.sort();
            readable.dedup();
            found.push(Self { config: config.clone(), program, readable });
        }
        found
    }

    /// Arguments of the program: the runtime's, the file, and the task's.
    pub(super) fn args(&self, file: &Path, task: &[String]) -> Vec<String> {
        let file = file.to_string_lossy();
        let own = self.config.args.iter();
        let mut args: Vec<String> = own.clone().map(|arg| arg.replace(FILE, &file)).collect();
        if !own.into_iter().any(|arg| arg.contains(FILE)) {
            args.push(file.into_owned());
        }
        args.extend(task.iter().cloned());
        args
    }

    /// Name of the file with the code.
    pub(super) fn file_name(&self) -> String {
        match self.config.extension.as_str() {
            "" => "main".to_owned(),
            extension => format!("main.{extension}"),
        }
    }

    /// `PATH` of its tasks: the folder of its program first.
    pub(super) fn path(&self) -> String {
        let own = self.program.parent().map(|folder| folder.to_string_lossy().into_owned());
        match own.filter(|own| !PATH.split(':').any(|folder| folder == own)) {
            Some(own) => format!("{own}:{PATH}"),
            None => PATH.to_owned(),
        }
    }
}

/// Programs of that name, in the order of `PATH`.
fn programs(command: &Path) -> Vec<PathBuf> {
    let runs = |path: &PathBuf| {
        fs::metadata(path)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if command.components().count() > 1 {
        return [command.to_owned()].into_iter().filter(runs).collect();
    }
    let folders: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    let absolute = folders.into_iter().filter(|folder| folder.is_absolute());
    absolute.map(|folder| folder.join(command)).filter(runs).collect()
}

/// Program and libraries of a Python. `python3` is often a script or a link of an environment; Python itself knows
/// its own location.
async fn locate_python(program: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let mut command = Command::new(program);
    command.args(["-c", LOCATE]).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LOCATE_WITHIN, command.output()).await.ok()?.ok()?;
    let printed = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let mut lines = printed.lines().map(PathBuf::from).filter(|path| path.is_absolute());
    let program = lines.next()?;
    Some((program, lines.filter(|path| path != Path::new("/usr")).collect()))
}

/// Installation folder of a program: the parent of its `bin`, unless that is a home folder; then the program's
/// own.
fn install_folder(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let above = folder.parent()?;
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_home = above.parent().is_none_or(|parent| parent == Path::new("/home"))
        || above == Path::new("/root")
        || home.as_deref() == Some(above);
    match folder.file_name() == Some(OsStr::new("bin")) && !is_home {
        true => Some(above.to_owned()),
        false => Some(folder.to_owned()),
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_readable_with_its_installation() {
        for (program, expected) in [
            ("/opt/node-22/bin/node", "/opt/node-22"),
            ("/home/ann/.pyenv/versions/3.12/bin/python3.12", "/home/ann/.pyenv/versions/3.12"),
            ("/home/ann/bin/tool", "/home/ann/bin"),
            ("/srv/tool", "/srv"),
            ("/bin/sh", "/bin"),
        ] {
            assert_eq!(install_folder(Path::new(program)), Some(expected.into()), "{program}");
        }
    }

    #[test]
    fn the_file_replaces_its_placeholder_or_comes_last() {
        let mut config = RuntimeConfig::sh();
        let runtime = |config: &RuntimeConfig| Runtime {
            config: config.clone(),
            program: "/opt/x/bin/x".into(),
            readable: Vec::new(),
        };
        let args = |config: &RuntimeConfig| {
            runtime(config).args(Path::new("/code/main.sh"), &["a".to_owned()])
        };
        config.args = vec!["-e".to_owned()];
        assert_eq!(args(&config), ["-e", "/code/main.sh", "a"]);
        config.args = vec!["--from={file}".to_owned(), "-x".to_owned()];
        assert_eq!(args(&config), ["--from=/code/main.sh", "-x", "a"]);
        assert!(runtime(&config).path().starts_with("/opt/x/bin:/usr/"));
        assert_eq!(runtime(&config).file_name(), "main.sh");
    }
}
