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

/// In an argument: the file with the code.
const FILE: &str = "{file}";
/// How long an interpreter may take to say where it lies.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Asks Python where it lies.
const WHERE: &str = "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')";
/// Where programs are looked for by tasks.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A runtime whose program is known.
#[derive(Clone, Debug)]
pub(super) struct Runtime {
    pub(super) config: RuntimeConfig,
    pub(super) program: PathBuf,
    /// What must be readable for it to work, besides what every task may read.
    pub(super) readable: Vec<PathBuf>,
}

impl Runtime {
    /// All programs that the runtime's command could mean, the likeliest first.
    pub(super) async fn candidates(config: &RuntimeConfig) -> Vec<Self> {
        let mut found = Vec::new();
        for program in programs(&config.command) {
            let (program, mut readable) = match config.name.as_str() {
                "python" => match ask_python(&program).await {
                    Some(said) => said,
                    None => continue,
                },
                _ => (program, Vec::new()),
            };
            readable.extend(around(&program));
            readable.extend(program.canonicalize().ok().and_then(|real| around(&real)));
            readable.extend(config.readable.iter().cloned());
            readable.retain(|path| !is_system(path));
            readable.sort();
            readable.dedup();
            found.push(Self { config: config.clone(), program, readable });
        }
        found
    }

    /// The program's arguments: its own, the file, and the task's.
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

    /// What the file with the code is called.
    pub(super) fn file_name(&self) -> String {
        match self.config.extension.as_str() {
            "" => "main".to_owned(),
            extension => format!("main.{extension}"),
        }
    }

    /// Where its tasks find programs: beside its own first.
    pub(super) fn path(&self) -> String {
        let beside = self.program.parent().map(|folder| folder.to_string_lossy().into_owned());
        match beside.filter(|beside| !PATH.split(':').any(|folder| folder == beside)) {
            Some(beside) => format!("{beside}:{PATH}"),
            None => PATH.to_owned(),
        }
    }
}

/// The programs of that name, in the order of `PATH`.
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

/// What is called `python3` is often a script that looks for one, or a link out of an environment. Python itself
/// knows what it is and where its library lies.
async fn ask_python(program: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let mut command = Command::new(program);
    command.args(["-c", WHERE]).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(ASK_WITHIN, command.output()).await.ok()?.ok()?;
    let said = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let mut lines = said.lines().map(PathBuf::from).filter(|path| path.is_absolute());
    let program = lines.next()?;
    Some((program, lines.filter(|path| path != Path::new("/usr")).collect()))
}

/// The folder with which a program is installed: that above its `bin`, where its libraries lie too. Not when that
/// is somebody's home.
fn around(program: &Path) -> Option<PathBuf> {
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
    fn a_program_is_read_with_what_it_was_installed_with() {
        for (program, expected) in [
            ("/opt/node-22/bin/node", "/opt/node-22"),
            ("/home/ann/.pyenv/versions/3.12/bin/python3.12", "/home/ann/.pyenv/versions/3.12"),
            ("/home/ann/bin/tool", "/home/ann/bin"),
            ("/srv/tool", "/srv"),
            ("/bin/sh", "/bin"),
        ] {
            assert_eq!(around(Path::new(program)), Some(expected.into()), "{program}");
        }
    }

    #[test]
    fn the_file_comes_where_it_is_asked_for_or_last() {
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
