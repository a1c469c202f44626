use super::flags::{DrainFlags, UndrainFlags};
use crate::admin_client::{self, AdminFlag, AdminRequest, percent_encoded};
use crate::failure::Failure;
use crate::task_client::TaskClient;
use crate::terminal::{print, printable};

/// `tidegate drain`.
pub fn run(flags: &DrainFlags) -> Result<(), Failure> {
    set(&flags.node, !flags.off, &flags.admin)
}

/// `tidegate undrain`.
pub fn run_off(flags: &UndrainFlags) -> Result<(), Failure> {
    set(&flags.node, false, &flags.admin)
}

fn set(node: &str, draining: bool, admin: &AdminFlag) -> Result<(), Failure> {
    let verb = if draining { "drain" } else { "undrain" };
    let path = format!("/v1/members/{}/{verb}", percent_encoded(node));
    let request = AdminRequest { method: "POST", path: &path, ..AdminRequest::default() };
    let client = TaskClient::new(admin);
    admin_client::runtime()?.block_on(client.json(&request))?;
    let node = printable(node);
    print(&match draining {
        true => format!("{node} is drained: nothing new is dispatched to it\n"),
        false => format!("{node} is no longer drained\n"),
    });
    Ok(())
}
