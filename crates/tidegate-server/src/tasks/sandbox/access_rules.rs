use super::config::Network;
use std::path::{Component, Path, PathBuf};

/// Quotation marks around a path in an error text.
const QUOTES: [char; 5] = ['\'', '"', '`', '‘', '’'];

/// Access that the sandbox gives a task, to tell its own denials from those of others.
#[derive(Clone, Debug)]
pub(super) struct AccessRules {
    pub(super) network: Network,
    /// Folders that the task may write to, as it sees them.
    pub(super) writable: Vec<PathBuf>,
    /// Some layer denies every write elsewhere.
    pub(super) confined: bool,
}

// === impl AccessRules ===

impl AccessRules {
    /// True when an error text names a path, right before or right after `phrase` at `at`, that the sandbox keeps
    /// the task from. An error about its own files, a relative path or no path at all is not the sandbox's.
    pub(super) fn deny_path_at(&self, text: &str, at: usize, phrase: &str) -> bool {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let line_after = after.split('\n').next().unwrap_or_default();
        let named = [path_at_end(line_before), path_at_start(line_after)];
        self.confined && named.into_iter().flatten().any(|path| self.denies(path))
    }

    fn denies(&self, path: &str) -> bool {
        let path = normal(Path::new(path));
        path.is_absolute() && !self.writable.iter().any(|folder| path.starts_with(folder))
    }
}

/// The path that ends a text, as in `cannot create /etc/x: `.
fn path_at_end(text: &str) -> Option<&str> {
    let text = text.trim_end().strip_suffix(':')?.trim_end();
    match text.strip_suffix(QUOTES) {
        Some(quoted) => quoted.rsplit(QUOTES).next(),
        None => text.rsplit(' ').next(),
    }
}

/// The path that begins a text, as in `: '/etc/x'`.
fn path_at_start(text: &str) -> Option<&str> {
    let text = text.strip_prefix(':')?.trim_start();
    match text.strip_prefix(QUOTES) {
        Some(quoted) => quoted.split(QUOTES).next(),
        None => text.split(' ').next(),
    }
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(text: &str, confined: bool) -> bool {
        let writable = vec!["/task".into(), "/tmp".into()];
        let rules = AccessRules { network: Network::Deny, writable, confined };
        let phrase = "Permission denied";
        rules.deny_path_at(text, text.rfind(phrase).unwrap(), phrase)
    }

    #[test]
    fn only_a_path_outside_of_the_writable_folders_is_denied_by_the_sandbox() {
        for text in [
            "/code/main.sh: 1: cannot create /etc/x: Permission denied",
            "cat: /srv/secret/id: Permission denied\n",
            "mkdir: cannot create directory ‘/var/a b’: Permission denied",
            "PermissionError: [Errno 13] Permission denied: '/code/main.py'",
            "PermissionError: [Errno 13] Permission denied: '/task/../etc/x'\n",
            "first\ncat: /tmpfile: Permission denied",
        ] {
            assert!(denied(text, true), "{text}");
            assert!(!denied(text, false), "nothing was in the way: {text}");
        }
        for text in [
            "git@example.org: Permission denied (publickey).",
            "Permission denied",
            "/code/main.sh: 1: ./tool: Permission denied",
            "cat: /task/secret: Permission denied",
            "PermissionError: [Errno 13] Permission denied: 'secret'",
            "PermissionError: [Errno 13] Permission denied: '/tmp/./a'",
            "/etc/x\nPermission denied",
            "tried /etc/x, and got Permission denied",
        ] {
            assert!(!denied(text, true), "{text}");
        }
    }
}
