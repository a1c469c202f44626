use clap::Args;
use tidegate_server::tasks::sandbox::launch::LaunchCommand;

/// Flags of the hidden `tidegate launch`.
#[derive(Debug, Args)]
pub struct LaunchFlags {
    #[arg(value_parser = launch_command)]
    pub command: LaunchCommand,
}

fn launch_command(name: &str) -> Result<LaunchCommand, String> {
    LaunchCommand::from_name(name).ok_or_else(|| {
        let names = LaunchCommand::ALL.map(LaunchCommand::name).join(", ");
        format!("expected one of {names}; only the process executor starts them")
    })
}
