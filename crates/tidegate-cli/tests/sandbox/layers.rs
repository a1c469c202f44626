//! Detection and reporting of sandbox layers.

use crate::bench::{Bench, Mode, config};
use tidegate_server::tasks::sandbox::{
    LayerUse, Layers, ProcessConfig, ProcessRunner, RunnerError, RuntimeConfig,
};

#[tokio::test]
async fn every_layer_is_told_with_the_reason() {
    let names =
        ["session", "uid", "rlimits", "bubblewrap", "landlock", "seccomp", "node_ports", "watcher"];
    let layers = Bench::new(Mode::All).await.runner.layers();
    assert_eq!(layers.iter().map(|layer| &*layer.layer).collect::<Vec<_>>(), names);
    assert!(layers.iter().all(|layer| !layer.detail.is_empty()), "{layers:?}");
    let layers = Bench::new(Mode::WatcherOnly).await.runner.layers();
    let active: Vec<_> = layers.iter().filter(|layer| layer.active).collect();
    let active: Vec<_> = active.iter().map(|layer| &*layer.layer).collect();
    assert_eq!(active, ["session", "watcher"]);
    assert!(layers.iter().filter(|layer| !layer.active).all(|layer| layer.detail == "turned off"));
}

#[tokio::test]
async fn python_and_sh_are_found() {
    let config = ProcessConfig { runtimes: Vec::new(), ..config(Mode::All) };
    let bench = Bench::with(config).await;
    assert_eq!(bench.runner.runtimes(), ["python", "sh"]);
    bench.assert_healthy().await;
}

#[tokio::test]
async fn a_runtime_that_was_declared_must_run() {
    let absent = RuntimeConfig::new("x", "no-such-program");
    let error = start(ProcessConfig { runtimes: vec![absent], ..config(Mode::All) }).await;
    let text = "the runtime x does not run: no-such-program is not in PATH; correct its command, \
                or remove it";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_launcher_must_be_one() {
    let error =
        start(ProcessConfig { launcher: Some("/bin/echo".into()), ..config(Mode::All) }).await;
    assert!(matches!(error, RunnerError::Launcher { .. }), "{error}");
    let error =
        start(ProcessConfig { launcher: Some("/nowhere".into()), ..config(Mode::All) }).await;
    assert!(matches!(error, RunnerError::Launcher { .. }), "{error}");
}

#[tokio::test]
async fn a_layer_that_is_required_must_be_there() {
    // On every machine one of the two holds: it is there, or the runner says that it is not.
    let layers = Layers { bubblewrap: LayerUse::Require, ..Layers::default() };
    let config = ProcessConfig { layers, ..config(Mode::All) };
    let folder = config.folder.clone();
    match ProcessRunner::new(config).await {
        Ok(runner) => {
            let layers = runner.layers();
            assert!(layers.iter().any(|layer| layer.layer == "bubblewrap" && layer.active));
        }
        Err(error) => assert!(matches!(error, RunnerError::Layer { layer: "bubblewrap", .. })),
    }
    std::fs::remove_dir(folder).unwrap();
}

async fn start(config: ProcessConfig) -> RunnerError {
    let folder = config.folder.clone();
    let error = ProcessRunner::new(config).await.expect_err("it should not start");
    std::fs::remove_dir(folder).expect("and leave nothing behind");
    error
}
