use super::flags::WorkersFlags;
use crate::admin_client::{self, AdminRequest};
use crate::failure::Failure;
use crate::task_client::TaskClient;
use crate::task_client::format::span;
use crate::terminal::{aligned, print, printable};
use serde_json::Value;

/// `tidegate workers`.
pub fn run(flags: &WorkersFlags) -> Result<(), Failure> {
    let client = TaskClient::new(&flags.admin);
    let request = AdminRequest::get("/v1/workers");
    let list = admin_client::runtime()?.block_on(client.json(&request))?;
    print(&if flags.json { format!("{list:#}\n") } else { table(&list) });
    Ok(())
}

fn table(list: &Value) -> String {
    let buffer = &list["stats_buffer"];
    let level = text(&buffer["level"]);
    let percent = 100.0 * buffer["fill"].as_f64().unwrap_or_default();
    let summary = format!(
        "manager {}: backpressure {level}, {percent:.0} % of the {} updates that may wait\n",
        printable(&text(&list["manager"])),
        text(&buffer["capacity"]),
    );
    let workers = list["workers"].as_array().map_or(&[][..], Vec::as_slice);
    if workers.is_empty() {
        return format!(
            "{summary}no worker has connected; start one with `tidegate worker --manager HOST:PORT`\n"
        );
    }
    let titles = [
        "WORKER", "STATE", "RUNNING", "SLOTS", "CPU", "MEMORY", "LOAD", "FLUSH", "QUEUE", "SINCE",
        "ADDRESS",
    ];
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    lines.extend(workers.iter().map(row));
    format!("{summary}\n{}", aligned(&lines, |column| (2..=6).contains(&column)))
}

fn row(worker: &Value) -> Vec<String> {
    let stats = &worker["stats"];
    let dash = || "-".to_owned();
    let state = match (worker["connected"].as_bool(), worker["draining"].as_bool()) {
        (Some(true), Some(true)) => "draining",
        (Some(true), _) => "connected",
        _ => "gone",
    };
    let memory = stats["memory_bytes"].as_f64().zip(stats["memory_bytes_max"].as_f64());
    let shown = |value: &Value| value.as_str().map_or_else(dash, printable);
    vec![
        printable(&text(&worker["name"])),
        state.to_owned(),
        text(&worker["running"]),
        text(&worker["slots"]),
        stats["cpu"].as_f64().map_or_else(dash, |cpu| format!("{:.0} %", 100.0 * cpu)),
        memory.map_or_else(dash, |(used, all)| format!("{:.0} %", 100.0 * used / all.max(1.0))),
        stats["load_1m"].as_f64().map_or_else(dash, |load| format!("{load:.2}")),
        shown(&stats["flush_state"]).to_lowercase().replace('_', " "),
        shown(&worker["queue"]["state"]).to_lowercase(),
        worker["connected_s"].as_u64().map_or_else(dash, |seconds| span(seconds * 1_000)),
        shown(&worker["address"]),
    ]
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn workers_are_shown_with_their_load_and_level() {
        let list = json!({
            "manager": "m1",
            "stats_buffer": { "level": "THROTTLE", "fill": 0.734, "capacity": 100 },
            "workers": [
                { "name": "w1", "connected": true, "draining": false, "running": 2, "slots": 4,
                  "connected_s": 65, "address": "127.0.0.1:5", "queue": { "state": "HEALTHY" },
                  "stats": { "cpu": 0.5, "memory_bytes": 1, "memory_bytes_max": 4, "load_1m": 1.5,
                             "flush_state": "BATCH_ONLY" } },
                { "name": "w2", "connected": false, "draining": false, "running": 0, "slots": 0 },
            ],
        });
        let text = table(&list);
        assert!(
            text.starts_with("manager m1: backpressure THROTTLE, 73 % of the 100 updates"),
            "{text}"
        );
        let rows: Vec<Vec<&str>> =
            text.lines().skip(3).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows[0],
            [
                "w1",
                "connected",
                "2",
                "4",
                "50",
                "%",
                "25",
                "%",
                "1.50",
                "batch",
                "only",
                "healthy",
                "1",
                "min",
                "5",
                "s",
                "127.0.0.1:5"
            ]
        );
        assert_eq!(rows[1], ["w2", "gone", "0", "0", "-", "-", "-", "-", "-", "-", "-"]);
        let none = json!({ "manager": "m", "stats_buffer": {}, "workers": [] });
        assert!(table(&none).contains("tidegate worker --manager"));
    }
}
