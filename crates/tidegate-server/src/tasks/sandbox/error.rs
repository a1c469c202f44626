use std::io;
use std::path::PathBuf;

/// Error that keeps the process runner from starting.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The launcher does not run.
    #[error("{} can't be the launcher: {why}; it must be a tidegate of this version", launcher.display())]
    Launcher {
        /// Program of the launcher.
        launcher: PathBuf,
        /// Reason.
        why: String,
    },
    /// A required layer is missing.
    #[error("the required layer {layer} is missing: {why}; install it, or don't require it")]
    Layer {
        /// Name of the layer.
        layer: &'static str,
        /// Reason.
        why: String,
    },
    /// The work folders can't be created.
    #[error("can't create work folders in {}: {source}; choose a folder of this user", folder.display())]
    Folder {
        /// Parent of the work folders.
        folder: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A runtime has network, and its tasks would reach the ports of this process.
    #[error(
        "tasks of the runtime {name} would reach this node's own ports, such as the admin port: its network is \
         \"allow\", and the layer node_ports is not active ({why}); set its network to \"deny\", or accept it with \
         tasks.unguarded_network = true"
    )]
    Unguarded {
        /// Name of the runtime.
        name: String,
        /// Reason why the layer is not active.
        why: String,
    },
    /// A declared runtime does not run.
    #[error("the runtime {name} does not run: {why}; correct its command, or remove it")]
    Runtime {
        /// Name of the runtime.
        name: String,
        /// Reason.
        why: String,
    },
}
