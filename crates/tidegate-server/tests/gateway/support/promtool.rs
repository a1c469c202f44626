use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What `promtool check metrics` says of a page: its exit code and its complaints.
pub async fn promtool(page: &str) -> (Option<i32>, String) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is needed for this test: install Debian's package `prometheus`, or run `make setup`");
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).await.unwrap();
    let output = promtool.wait_with_output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
