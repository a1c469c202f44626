use crate::support::errors;
use tidegate::capacity::Placement;
use tidegate_server::config::{Config, NetworkUse};

#[test]
fn executors_and_runtimes_come_from_a_file() {
    let config = Config::from_toml(
        "[tasks]\nplacement = \"queue\"\nslot_ledger = \"redis://:secret@127.0.0.1:6379/1\"\n\
         [[executor]]\nurl = \"http://10.0.0.7:8083/\"\n\
         [[runtime]]\nname = \"node\"\ncommand = \"node\"\nargs = [\"--no-warnings\", \"{file}\"]\n\
         env = [\"NODE_ENV=test\"]\nmemory_mib_max = 256\nnetwork = \"fail\"\n",
    );
    let tasks = config.unwrap().tasks;
    assert_eq!(tasks.placement, Placement::Queue);
    assert_eq!(tasks.executors, ["http://10.0.0.7:8083"]);
    assert_eq!(tasks.local_slots(), 0, "other executors run the tasks");
    let node = &tasks.runtimes[0];
    assert_eq!((node.name.as_str(), node.memory_bytes_max), ("node", Some(256 << 20)));
    assert_eq!((node.env["NODE_ENV"].as_str(), node.network), ("test", NetworkUse::Fail));
    assert!(!format!("{tasks:?}").contains("secret"));
    assert!(Config::default().tasks.local_slots() >= 1);
}

#[test]
fn errors_of_executors_and_runtimes_are_reported_at_once() {
    let errors = errors(
        "[tasks]\nplacement = \"push\"\nslot_ledger = \"mysql://x\"\n\
         [[executor]]\nurl = \"http://a:1\"\n[[executor]]\nurl = \"http://a:1/\"\n\
         [[executor]]\nurl = \"https://a:1\"\n[[runtime]]\nname = \"x\"\n",
    );
    let text = errors.to_string();
    for part in ["tasks.placement", "tasks.slot_ledger", "each executor once", "executor[3].url"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("runtime[1].command"), "{text}");
}
