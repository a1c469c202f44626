use super::flags::MembersFlags;
use crate::admin_client::{self, AdminRequest};
use crate::failure::Failure;
use crate::task_client::TaskClient;
use crate::task_client::format::span;
use crate::terminal::{aligned, print, printable};
use serde_json::Value;

/// `tidegate members`.
pub fn run(flags: &MembersFlags) -> Result<(), Failure> {
    let client = TaskClient::new(&flags.admin);
    let request = AdminRequest::get("/v1/members");
    let list = admin_client::runtime()?.block_on(client.json(&request))?;
    print(&if flags.json { format!("{list:#}\n") } else { table(&list) });
    Ok(())
}

fn table(list: &Value) -> String {
    let members = list["members"].as_array().map_or(&[][..], Vec::as_slice);
    let titles =
        ["NODE", "ROLE", "CELL", "STATE", "SINCE", "LOAD", "LEVEL", "VERSION", "ADDRESS", "REASON"];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(members.iter().map(row));
    let asked = printable(list["node"].as_str().unwrap_or_default());
    format!("seen by {asked}\n\n{}", aligned(&lines, |column| column == 4))
}

fn row(member: &Value) -> Vec<String> {
    let shown = |value: &Value| match value.as_str() {
        Some("") | None => "-".to_owned(),
        Some(text) => printable(text),
    };
    let draining = member["draining"].as_bool() == Some(true);
    let state = shown(&member["state"]) + if draining { ", draining" } else { "" };
    let load = match (member["running"].as_u64(), member["slots"].as_u64()) {
        (Some(running), Some(slots)) => format!("{running}/{slots}"),
        _ => "-".to_owned(),
    };
    vec![
        shown(&member["node"]),
        shown(&member["role"]),
        shown(&member["cell"]),
        state,
        member["since_s"].as_u64().map_or_else(|| "-".to_owned(), |since| span(since * 1_000)),
        load,
        shown(&member["level"]).to_lowercase().replace('_', " "),
        shown(&member["version"]),
        shown(&member["address"]),
        shown(&member["reason"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_shown_with_why_one_is_suspected() {
        let list = json!({ "node": "m1", "cell": "main", "members": [
            { "node": "m1", "role": "manager", "cell": "main", "state": "alive", "since_s": 65,
              "version": "0.1.0", "address": "127.0.0.1:8010", "draining": false, "level": "NONE" },
            { "node": "w1", "role": "worker", "cell": "main", "state": "suspect", "since_s": 12,
              "version": "", "address": "127.0.0.1:8011", "draining": true, "running": 1, "slots": 4,
              "reason": "m1 got no answer from it" },
        ]});
        let text = table(&list);
        let rows: Vec<&str> = text.lines().skip(3).map(str::trim_end).collect();
        assert!(text.starts_with("seen by m1\n"), "{text}");
        assert!(
            rows[0].starts_with("m1") && rows[0].contains(" alive ") && rows[0].contains(" none ")
        );
        assert!(rows[1].contains("suspect, draining") && rows[1].contains(" 1/4 "), "{text}");
        assert!(rows[1].ends_with("m1 got no answer from it"), "{text}");
    }
}
