use super::Origin;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Folders of the service manager for the state of a service; with several, separated by colons.
const SERVICE: &str = "STATE_DIRECTORY";
/// The user's folder for state, and the one that it stands for when it is not set.
const USER: &str = "XDG_STATE_HOME";
const HOME: &str = "HOME";
const USER_DEFAULT: &str = ".local/state";
/// The folder of this program in the user's.
const OWN: &str = "tidegate";

/// Names of the stores in the state folder.
pub(super) const USAGE: &str = "usage";
pub(super) const TASKS: &str = "tasks";
/// Name of the key of tasks' environments in the state folder.
pub(super) const ENV_KEY: &str = "task-env.key";

/// The state folder that the environment names, and the variable that does.
///
/// A relative path is left out, as the specification of these variables asks: it would name another folder in
/// each working directory.
pub(super) fn from_env(env: &BTreeMap<String, String>) -> Option<(PathBuf, Origin)> {
    let absolute = |name: &str| {
        let first = env.get(name)?.split(':').next()?;
        Some(PathBuf::from(first)).filter(|path| path.is_absolute())
    };
    let origin = |name: &str| Origin::Env(name.to_owned());
    let service = || Some((absolute(SERVICE)?, origin(SERVICE)));
    let user = || Some((absolute(USER)?.join(OWN), origin(USER)));
    let home = || Some((absolute(HOME)?.join(USER_DEFAULT).join(OWN), origin(HOME)));
    service().or_else(user).or_else(home)
}
