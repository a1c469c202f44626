//! The real binary, in an empty directory and with an empty environment.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{quoted_commands, shell, succeeded};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
        self.set_mode(name, 0o640);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.0.join(name), mode).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(args)
            .current_dir(&self.0)
            .env_clear()
            .envs(env.iter().copied())
            .output()
            .unwrap();
        Ran::new(output)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    #[track_caller]
    fn fails(self, code: i32, says: &[&str]) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        for part in says {
            assert!(self.err.contains(part), "{part:?} is not in: {}", self.err);
        }
        self.err
    }
}

/// The line of `config show` about a key, its columns separated by one space.
fn shown(out: &str, key: &str) -> String {
    let line = out.lines().find(|line| line.split_whitespace().next() == Some(key)).unwrap();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn help_and_version_are_there() {
    let place = Place::new();
    assert!(place.run(&["--version"]).ok().starts_with("tidegate "));
    let help = place.run(&["--help"]).ok();
    assert!(help.contains("Examples:") && help.contains("Exit codes"), "{help}");
    assert!(place.run(&["up", "--help"]).ok().contains("--critical-reserve"));
}

#[test]
fn what_was_typed_wrong_is_2() {
    let place = Place::new();
    place.run(&["dwn"]).fails(2, &["dwn"]);
    place.run(&["up", "--hihg-limit", "5"]).fails(2, &["--high-limit"]);
    place.run(&["up", "--set", "admission.high_limit"]).fails(2, &["KEY=VALUE"]);
    place.run(&[]).fails(2, &["Usage"]);
}

#[test]
fn init_check_and_show_agree() {
    let place = Place::new();
    assert!(place.run(&["config", "init"]).ok().contains("wrote tidegate.toml"));
    let check = place.run(&["config", "check"]).ok();
    assert!(check.starts_with("ok: tidegate.toml: gate on 127.0.0.1:8000"), "{check}");
    assert!(check.contains("0 upstreams") && check.contains("at most 2000 in flight"), "{check}");

    let with_file = place.run(&["config", "show"]).ok();
    let without = Place::new().run(&["config", "show"]).ok();
    assert_eq!(with_file, without, "the initial file changes nothing");
    assert_eq!(place.run(&["config", "init", "-"]).ok(), place.read("tidegate.toml"));
}

#[test]
fn check_and_up_report_tls_files_with_the_other_errors() {
    let place = Place::new();
    let tls = "[tls]\ncert = \"no.pem\"\nkey = \"no.key\"\n";
    place.write("tls.toml", tls);
    place.write("both.toml", &format!("{tls}[admission]\nhihg_limit = 5\n"));
    let files = ["2 errors in TLS files", "no.pem", "no.key", "data, admin"];
    let both = [&files[..], &["1 error in the configuration", "admission.high_limit"]].concat();
    for command in [&["config", "check", "--config"][..], &["config", "check"], &["up", "--config"]]
    {
        place.run(&[command, &["tls.toml"]].concat()).fails(2, &files);
        place.run(&[command, &["both.toml"]].concat()).fails(2, &both);
    }
    place.run(&["config", "check", "tls.toml", "--config", "tls.toml"]).fails(2, &["--config"]);
}

#[test]
fn init_overwrites_only_when_told() {
    let place = Place::new();
    place.write("mine.toml", "role = \"worker\"");
    place.run(&["config", "init", "mine.toml"]).fails(1, &["mine.toml", "--force"]);
    assert_eq!(place.read("mine.toml"), "role = \"worker\"");
    place.run(&["config", "init", "mine.toml", "--force"]).ok();
    assert!(place.read("mine.toml").contains("[admission]"));
    place.run(&["config", "init", "no/such/folder.toml"]).fails(1, &["no/such/folder.toml"]);
}

#[test]
fn a_missing_file_says_which_and_how_to_make_one() {
    let place = Place::new();
    let says = ["nowhere.toml", "tidegate config init nowhere.toml"];
    place.run(&["up", "--config", "nowhere.toml"]).fails(2, &says);
    place.run(&["config", "check", "nowhere.toml"]).fails(2, &says);
    let env = [("TIDEGATE_CONFIG", "nowhere.toml")];
    place.run_with(&["config", "show"], &env).fails(2, &["nowhere.toml", "TIDEGATE_CONFIG"]);
    std::fs::write(place.0.join("latin.toml"), b"# \xe4").unwrap();
    place.run(&["config", "check", "latin.toml"]).fails(2, &["latin.toml", "UTF-8"]);
    place.run(&["config", "check", "."]).fails(2, &["can't read"]);
}

#[test]
fn the_commands_in_messages_about_the_configuration_work() {
    let place = Place::new();
    let advised = |said: &str| said[said.find("tidegate config").unwrap()..].trim().to_owned();
    for name in ["plain.toml", "with space.toml", "./-dash.toml", "quote'd.toml"] {
        let missing = place.run(&["config", "check", "--config", name]);
        let init = advised(&missing.fails(2, &["make one with: "]));
        let wrote = succeeded(&mut shell(&init, &place.0));
        assert!(place.0.join(name).exists(), "{init}");
        let checked = succeeded(&mut shell(&advised(&wrote), &place.0));
        assert!(checked.starts_with("ok: "), "{checked}");
    }
    let wrong = place.run(&["up", "--set", "admission.high_limit"]).fails(2, &[]);
    for line in quoted_commands(&wrong) {
        assert!(succeeded(&mut shell(&line, &place.0)).contains("admission.high_limit"), "{line}");
    }
    for line in ["tidegate config check", "tidegate config show", "tidegate config init -"] {
        succeeded(&mut shell(line, &place.0));
    }
    for command in ["sim", "drill"] {
        let unknown = place.run(&[command, "no_such_scenario"]).fails(2, &["--list"]);
        let list = format!("tidegate {command} --list");
        assert!(unknown.contains(&list), "{unknown}");
        assert!(succeeded(&mut shell(&list, &place.0)).contains("low_flood"));
    }
}

#[test]
fn up_fails_with_1_when_its_port_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = [
        "up",
        "--listen",
        &address,
        "--admin-listen",
        "127.0.0.1:0",
        "--ingest",
        "false",
        "--tasks",
        "false",
    ];
    let err = Place::new().run(&args).fails(1, &[&address, "--listen"]);
    assert!(!err.contains('\u{1b}'), "no colours where nobody looks: {err:?}");
}

#[test]
fn up_check_and_show_tell_all_errors_of_all_layers() {
    let place = Place::new();
    place.write("tidegate.toml", "[admission]\nhihg_limit = 50\nsharing = \"borow\"\n");
    let env = [("TIDEGATE_LISTEN_THREADS", "many"), ("TIDEGATE_ROLL", "gate")];
    let flags = ["--low-limit", "-5", "--upstream", "127.0.0.1:9001", "--set", "log.lvl=info"];
    let says = [
        "7 errors",
        "tidegate.toml:2",
        "did you mean admission.high_limit?",
        "tidegate.toml:3",
        "did you mean \"borrow\"?",
        "env TIDEGATE_LISTEN_THREADS",
        "did you mean TIDEGATE_ROLE?",
        "flag --low-limit): given \"-5\"; allowed: a whole number, 0 … 65535 messages",
        "flag --upstream",
        "did you mean \"http://127.0.0.1:9001\"?",
        "did you mean log.level?",
    ];
    for command in [&["up"][..], &["config", "check"], &["config", "show"]] {
        let args: Vec<_> = command.iter().chain(&flags).copied().collect();
        place.run_with(&args, &env).fails(2, &says);
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let place = Place::new();
    place.write("tidegate.toml", "[admission]\nhigh_limit = 1\nnormal_limit = 1\nlow_limit = 1\n");
    let env = [
        ("TIDEGATE_ADMISSION_NORMAL_LIMIT", "2"),
        ("TIDEGATE_ADMISSION_LOW_LIMIT", "2"),
        ("TIDEGATE_UPSTREAM", "http://a:1,http://b:2"),
    ];
    let flags = ["config", "show", "--low-limit", "3", "--role", "worker"];
    let out = place.run_with(&flags, &env).ok();
    assert_eq!(shown(&out, "admission.high_limit"), "1 messages file tidegate.toml:2");
    let normal = "2 messages env TIDEGATE_ADMISSION_NORMAL_LIMIT";
    assert_eq!(shown(&out, "admission.normal_limit"), normal);
    assert_eq!(shown(&out, "admission.low_limit"), "3 messages flag --low-limit");
    assert_eq!(shown(&out, "admission.global_limit"), "500 messages preset worker");
    assert_eq!(shown(&out, "log.level"), "\"info\" default");
    assert_eq!(shown(&out, "upstream[2].url"), "\"http://b:2\" env TIDEGATE_UPSTREAM");
}

#[test]
fn the_file_is_the_flag_s_then_the_environment_s_then_the_directory_s() {
    let place = Place::new();
    for name in ["tidegate", "env", "flag"] {
        place.write(&format!("{name}.toml"), "role = \"worker\"");
    }
    let env = [("TIDEGATE_CONFIG", "env.toml")];
    let role = |args: &[&str], env: &[(&str, &str)]| shown(&place.run_with(args, env).ok(), "role");
    assert_eq!(role(&["config", "show"], &[]), "\"worker\" file tidegate.toml:1");
    assert_eq!(role(&["config", "show"], &env), "\"worker\" file env.toml:1");
    let flag = ["config", "show", "--config", "flag.toml"];
    assert_eq!(role(&flag, &env), "\"worker\" file flag.toml:1");
}

#[test]
fn the_established_environment_names_work() {
    let place = Place::new();
    let env = [("PENDING_RESPONSE_MAX_CONCURRENT", "900"), ("PENDING_RESPONSE_LOW_LIMIT", "60")];
    let out = place.run_with(&["config", "show"], &env).ok();
    let global = "900 messages env PENDING_RESPONSE_MAX_CONCURRENT";
    assert_eq!(shown(&out, "admission.global_limit"), global);
    assert_eq!(shown(&out, "admission.critical_reserve"), "90 messages default");
    let both = [env[1], ("TIDEGATE_ADMISSION_LOW_LIMIT", "61")];
    let says = ["PENDING_RESPONSE_LOW_LIMIT", "TIDEGATE_ADMISSION_LOW_LIMIT"];
    place.run_with(&["config", "check"], &both).fails(2, &says);
}

#[test]
fn show_as_json_has_value_unit_and_origin_and_no_secret() {
    let place = Place::new();
    place.write("tidegate.toml", "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"\n");
    let out = place.run(&["config", "show", "--json", "--high-limit", "7"]).ok();
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let high = &json["admission.high_limit"];
    assert_eq!((high["value"].as_u64(), high["unit"].as_str()), (Some(7), Some("messages")));
    assert_eq!(high["origin"], "flag --high-limit");
    assert_eq!(json["client[1].token"]["value"], "***");
    assert!(!out.contains("0123456789abcdef"));
}

#[test]
fn a_file_with_tokens_for_everyone_is_refused_with_what_to_do() {
    let place = Place::new();
    place.write("tidegate.toml", "[[client]]\nname = \"a\"\ntoken = \"0123456789abcdef\"\n");
    place.run(&["config", "check"]).ok();
    place.set_mode("tidegate.toml", 0o644);
    let says = ["client[1].token (file tidegate.toml:3)", "mode 0644", "chmod 640 tidegate.toml"];
    place.run(&["config", "check"]).fails(2, &says);
    place.run(&["up"]).fails(2, &says);
}

#[test]
fn a_log_filter_is_checked_to_the_end() {
    let place = Place::new();
    place.run(&["config", "check", "--log-level", "info,hyper=warn"]).ok();
    place.run(&["config", "check", "--log-level", "loud"]).fails(2, &["log.level", "info"]);
    place
        .run(&["config", "check", "--log-level", "a[b=c"])
        .fails(2, &["log.level (flag --log-level)"]);
}
