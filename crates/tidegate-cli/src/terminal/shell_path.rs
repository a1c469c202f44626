use std::path::Path;
use tidegate_sim::shell::word;

/// Path as a word of a shell command; a leading dash gets `./`, or it would be taken for a flag.
pub fn shell_path(path: &Path) -> String {
    let shown = path.display().to_string();
    match shown.starts_with('-') {
        true => word(&format!("./{shown}")),
        false => word(&shown),
    }
}
