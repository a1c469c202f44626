use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tidegate::task::TaskId;

/// Beginning of a sealed value, with the number of its format.
const MARK: &str = "tidegate-sealed:1:";
/// First words of a key file, with the number of its format; then the key in hexadecimal digits.
const TITLE: &str = "tidegate env key 1 ";
/// Bytes of a key, and of the part of its digest that names it.
const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 4;

/// Key that seals the values of tasks' environments before they are stored. A stolen disk, backup or database then
/// has their names alone.
///
/// Each value is encrypted with ChaCha20-Poly1305 under a random nonce, and bound to its task and its name: it
/// opens nowhere else.
pub struct EnvKey {
    /// Name of the key: tells a wrong key from a damaged value.
    id: String,
    aead: LessSafeKey,
    fingerprint: hmac::Key,
    random: SystemRandom,
}

/// Error that keeps the key from being read or made.
#[derive(Debug, thiserror::Error)]
pub enum EnvKeyError {
    /// The file can't be read or made.
    #[error("the key of tasks' environments {}: {source}; choose another with tasks.env_key_file", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// The file has something else in it.
    #[error(
        "{} is no key of tasks' environments: expected \"{TITLE}\" and 64 hexadecimal digits; restore it from a \
         backup, or choose another with tasks.env_key_file",
        path.display()
    )]
    NotAKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// Every user can read the file.
    #[error("every user can read the key {} (mode {mode:o}): chmod 600 it", path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system gave no random bytes, or refused to encrypt.
    #[error("the environment of a task can't be sealed: the system gave no random bytes")]
    Random,
}

/// Error of a sealed environment that this manager can't open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Value that was sealed with another key.
    #[error(
        "its env value {name} is sealed with the key {sealed_with}, and this manager has {own}: give managers that \
         share a store the same tasks.env_key_file, and submit the task again"
    )]
    OtherKey {
        /// Name of the variable.
        name: String,
        /// Name of the key that sealed it.
        sealed_with: String,
        /// Name of this manager's key.
        own: String,
    },
    /// Value that was changed, or belongs to another task.
    #[error("its env value {name} was changed after it was sealed: submit the task again")]
    Damaged {
        /// Name of the variable.
        name: String,
    },
}

// === impl EnvKey ===

impl EnvKey {
    /// Reads the key of a file, which is made at the first start, readable for its user alone.
    ///
    /// # Errors
    ///
    /// When the file can't be read or made, is no key, or can be read by every user.
    pub fn load_or_create(path: &Path) -> Result<Self, EnvKeyError> {
        let failed = |source| EnvKeyError::File { path: path.to_owned(), source };
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(path)?;
                fs::read_to_string(path).map_err(failed)?
            }
            read => read.map_err(failed)?,
        };
        let mode = fs::metadata(path).map_err(failed)?.mode() & 0o777;
        if mode & 0o007 != 0 {
            return Err(EnvKeyError::Exposed { path: path.to_owned(), mode });
        }
        let digits = text.trim_end().strip_prefix(TITLE);
        let bytes = digits.and_then(from_hex).and_then(|bytes| bytes.try_into().ok());
        let bytes = bytes.ok_or_else(|| EnvKeyError::NotAKey { path: path.to_owned() })?;
        Self::new(&bytes).ok_or(EnvKeyError::Random)
    }

    /// The key of these bytes.
    fn new(bytes: &[u8; KEY_BYTES]) -> Option<Self> {
        let master = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let derived = |purpose: &str| hmac::sign(&master, purpose.as_bytes());
        let aead = UnboundKey::new(&CHACHA20_POLY1305, derived("env values").as_ref()).ok()?;
        Some(Self {
            id: to_hex(derived("name").as_ref().get(..ID_BYTES)?),
            aead: LessSafeKey::new(aead),
            fingerprint: hmac::Key::new(hmac::HMAC_SHA256, derived("fingerprint").as_ref()),
            random: SystemRandom::new(),
        })
    }

    /// Name of the key, which tells nothing about it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Seals the values of a task's environment.
    pub(super) fn seal(
        &self,
        task: &TaskId,
        env: &mut BTreeMap<String, String>,
    ) -> Result<(), EnvKeyError> {
        for (name, value) in env {
            let mut nonce = [0; NONCE_LEN];
            self.random.fill(&mut nonce).map_err(|_| EnvKeyError::Random)?;
            let mut bytes = value.as_bytes().to_vec();
            let (aad, once) = (binding(task, name), Nonce::assume_unique_for_key(nonce));
            let sealed = self.aead.seal_in_place_append_tag(once, Aad::from(aad), &mut bytes);
            sealed.map_err(|_| EnvKeyError::Random)?;
            *value = format!("{MARK}{}:{}{}", self.id, to_hex(&nonce), to_hex(&bytes));
        }
        Ok(())
    }

    /// The environment with its values. Values of tasks from before there was a key are as they were.
    pub(super) fn open(
        &self,
        task: &TaskId,
        env: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, OpenError> {
        let open = |(name, value): (&String, &String)| {
            let value = match value.strip_prefix(MARK) {
                Some(sealed) => self.open_value(task, name, sealed)?,
                None => value.clone(),
            };
            Ok((name.clone(), value))
        };
        env.iter().map(open).collect()
    }

    fn open_value(&self, task: &TaskId, name: &str, sealed: &str) -> Result<String, OpenError> {
        let damaged = || OpenError::Damaged { name: name.to_owned() };
        let (id, digits) = sealed.split_once(':').ok_or_else(damaged)?;
        if id != self.id {
            let (sealed_with, own) = (id.chars().take(2 * ID_BYTES).collect(), self.id.clone());
            return Err(OpenError::OtherKey { name: name.to_owned(), sealed_with, own });
        }
        let mut bytes = from_hex(digits).ok_or_else(damaged)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let aad = Aad::from(binding(task, name));
        let opened = self.aead.open_in_place(nonce, aad, sealed).map_err(|_| damaged())?;
        String::from_utf8(opened.to_vec()).map_err(|_| damaged())
    }

    /// The name of the other key that sealed a value of this environment, if there is one.
    pub(super) fn other_key_of<'a>(&self, env: &'a BTreeMap<String, String>) -> Option<&'a str> {
        let sealed_with = |value: &'a String| Some(value.strip_prefix(MARK)?.split_once(':')?.0);
        env.values().filter_map(sealed_with).find(|id| *id != self.id)
    }

    /// Digest of a submission that has secrets in it. A plain digest would confirm guesses of them.
    pub(super) fn fingerprint(&self, submission: &[u8]) -> [u8; 16] {
        let mut short = [0; 16];
        let digest = hmac::sign(&self.fingerprint, submission);
        short.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        short
    }
}

impl PartialEq for EnvKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for EnvKey {}

impl fmt::Debug for EnvKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Data that a value is bound to. Neither a task's id nor a variable's name has a NUL.
fn binding(task: &TaskId, name: &str) -> Vec<u8> {
    [task.as_str().as_bytes(), b"\0", name.as_bytes()].concat()
}

/// Makes a key file. A process that makes the same at the same time wins or loses as a whole: the file gets its
/// name only when it is complete, and never takes the place of another.
fn create(path: &Path) -> Result<(), EnvKeyError> {
    let failed = |source| EnvKeyError::File { path: path.to_owned(), source };
    let mut key = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut key).map_err(|_| EnvKeyError::Random)?;
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    let _ = fs::remove_file(&new);
    let written =
        File::options().write(true).create_new(true).mode(0o600).open(&new).and_then(|mut file| {
            writeln!(file, "{TITLE}{}", to_hex(&key))?;
            file.sync_all()
        });
    let linked = written.and_then(|()| match fs::hard_link(&new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    let _ = fs::remove_file(&new);
    linked.map_err(failed)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const SECRET: &str = "hunter2-ünd-mehr";

    fn id(text: &str) -> TaskId {
        TaskId::new(text).unwrap()
    }

    fn sealed(key: &EnvKey, task: &str) -> BTreeMap<String, String> {
        let mut env = BTreeMap::from([
            ("EMPTY".to_owned(), String::new()),
            ("PASSWORD".to_owned(), SECRET.to_owned()),
        ]);
        key.seal(&id(task), &mut env).unwrap();
        env
    }

    #[test]
    fn a_value_opens_for_its_task_and_name_alone() {
        let key = EnvKey::new(&[7; KEY_BYTES]).unwrap();
        let env = sealed(&key, "a");
        assert!(env.values().all(|value| value.starts_with(MARK) && !value.contains(SECRET)));
        assert_ne!(env, sealed(&key, "a"), "no nonce is used twice");
        let opened = key.open(&id("a"), &env).unwrap();
        assert_eq!((&*opened["PASSWORD"], &*opened["EMPTY"]), (SECRET, ""));
        assert!(matches!(key.open(&id("b"), &env), Err(OpenError::Damaged { .. })));
        let renamed = BTreeMap::from([("OTHER".to_owned(), env["PASSWORD"].clone())]);
        assert!(matches!(key.open(&id("a"), &renamed), Err(OpenError::Damaged { .. })));
        for cut in 0..env["PASSWORD"].len() {
            let value = env["PASSWORD"][..cut].to_owned();
            let cut = key.open(&id("a"), &BTreeMap::from([("PASSWORD".to_owned(), value)]));
            assert_ne!(cut.ok().map(|env| env["PASSWORD"].clone()).as_deref(), Some(SECRET));
        }
    }

    #[test]
    fn another_key_is_named_and_plain_values_are_read() {
        let (key, other) = (EnvKey::new(&[7; 32]).unwrap(), EnvKey::new(&[8; 32]).unwrap());
        let error = other.open(&id("a"), &sealed(&key, "a")).unwrap_err().to_string();
        assert!(error.contains(key.id()) && error.contains(other.id()), "{error}");
        assert!(error.contains("env_key_file") && !error.contains(SECRET), "{error}");
        assert_eq!(other.other_key_of(&sealed(&key, "a")), Some(key.id()));
        assert_eq!(key.other_key_of(&sealed(&key, "a")), None);
        let plain = BTreeMap::from([("PASSWORD".to_owned(), SECRET.to_owned())]);
        assert_eq!(key.other_key_of(&plain), None);
        assert_eq!(key.open(&id("a"), &plain), Ok(plain));
        assert_ne!(key.fingerprint(b"x"), other.fingerprint(b"x"));
    }

    #[test]
    fn a_key_file_is_made_once_and_closed() {
        let folder = std::env::temp_dir().join(format!("tidegate-env-key-{}", std::process::id()));
        let path = folder.join("state/env.key");
        let first = EnvKey::load_or_create(&path).unwrap();
        assert_eq!(EnvKey::load_or_create(&path).unwrap(), first);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.join("state")).unwrap().count(), 1, "nothing is left over");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = EnvKey::load_or_create(&path).unwrap_err();
        assert!(matches!(error, EnvKeyError::Exposed { mode: 0o644, .. }), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        for text in ["", "secret", "tidegate env key 1 00", "tidegate env key 2 00"] {
            fs::write(&path, text).unwrap();
            let error = EnvKey::load_or_create(&path).unwrap_err();
            assert!(matches!(error, EnvKeyError::NotAKey { .. }), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
