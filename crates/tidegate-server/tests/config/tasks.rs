use crate::support::errors;
use tidegate::capacity::Placement;
use tidegate_server::config::{Config, ExecutorEntry, Loader, NetworkUse};

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
    assert_eq!(tasks.executors, [ExecutorEntry::open("http://10.0.0.7:8083")]);
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
         [[executor]]\nurl = \"ftp://a:1\"\n[[runtime]]\nname = \"x\"\n",
    );
    let text = errors.to_string();
    for part in ["tasks.placement", "tasks.slot_ledger", "each executor once", "executor[3].url"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("runtime[1].command"), "{text}");
}

#[test]
fn the_ports_of_the_node_are_known_before_it_listens() {
    let ports = |toml: &str| Config::from_toml(toml).unwrap().tasks.node_ports;
    assert_eq!(ports(""), [7070, 7071, 8000, 8001, 8002].into());
    let chosen = "[listen]\naddress = \"127.0.0.1:0\"\nadmin_address = \"127.0.0.1:9001\"\n\
                  [ingest]\nframes_address = \"127.0.0.1:9002\"";
    assert_eq!(
        ports(chosen),
        [7071, 8002, 9001, 9002].into(),
        "one that is chosen later is not known"
    );
}

#[test]
fn an_executor_can_have_a_token_which_stays_secret() {
    let file = "[[executor]]\nurl = \"https://10.0.0.7:8083\"\ntoken_env = \"TIDEGATE_W1\"\n";
    let load = |token: &str| {
        let env = [("TIDEGATE_W1".to_owned(), token.to_owned())];
        Loader::new().file("f", file).env(env).load()
    };
    let loaded = load("0123456789abcdef").unwrap();
    let executor = &loaded.config.tasks.executors[0];
    assert_eq!(executor.token.as_ref().unwrap().expose(), "0123456789abcdef");
    assert!(!format!("{executor:?} {:?}", loaded.origins).contains("0123456789abcdef"));
    let weak = load("hunter2").unwrap_err().to_string();
    assert!(weak.contains("executor[1].token_env") && !weak.contains("hunter2"), "{weak}");
    let alone = errors("tasks.tls_cert = \"c\"");
    assert_eq!(alone[0].field, "tasks.tls_key");
}
