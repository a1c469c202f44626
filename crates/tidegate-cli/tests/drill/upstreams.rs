//! Faults in upstreams behind somebody's gateway.

use super::program::{alone, drill, figure, file, notes};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;
use tidegate_server::config::Config;
use tidegate_server::gateway::Gateway;
use tidegate_testkit::mock::{Mock, MockConfig};

/// Half of what two upstreams can do, and a question to the control plane now and then. All that is ever due may
/// wait at once: what a machine sends late and together is not refused.
pub const TINY: &str = r#"
about = "Half of what two upstreams can do, for two seconds"
seed = 3
duration_s = 2
settle_s = 0.2

[gateway]
limits = { global = 1000, high = 0, normal = 0, low = 0 }

[upstreams]
count = 2
slots = 4
queue = 500

[[class]]
name = "people"
priority = "high"
share = 0.5
service = { kind = "fixed", ms = 20 }

[[class]]
name = "control"
priority = "critical"
per_s = 20
service = { kind = "fixed", ms = 1 }

[[expect]]
what = "failed_share"
max = 0

[[expect]]
what = "refused_share"
max = 0

[[expect]]
what = "latency_p50_ms"
of = "people"
max = 2000
"#;

/// The fault is a second away from the other phases: what is sent late, or a fault that is set late, stays in its
/// own.
const FAULT: &str = r#"
phase = [{ name = "before" }, { name = "fault", part = 3 }, { name = "after" }]
fault = [{ kind = "fails", share = 1.0, at = [1], from_s = 2, until_s = 3 }]
"#;

/// Two mocks and a gateway in front of them, which asks one after the other.
struct Fleet {
    mocks: Vec<Mock>,
    gateway: Gateway,
}

impl Fleet {
    fn start(faults: bool) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let start = |name: &str| {
            Mock::start(MockConfig {
                listen: any,
                name: name.to_owned(),
                faults,
                ..MockConfig::default()
            })
        };
        let mocks = vec![start("left").unwrap(), start("right").unwrap()];
        let upstreams =
            mocks.iter().map(|mock| format!("[[upstream]]\nurl = \"http://{}\"\n", mock.address()));
        let text = format!(
            "[listen]\naddress = \"127.0.0.1:0\"\nadmin_address = \"127.0.0.1:0\"\n\
             [routing]\npick = \"round_robin\"\n{}",
            upstreams.collect::<String>()
        );
        let gateway = Gateway::start(Config::from_toml(&text).unwrap()).unwrap();
        Self { mocks, gateway }
    }

    fn target(&self) -> String {
        format!("http://{}", self.gateway.address())
    }

    fn upstreams(&self) -> String {
        let urls = self.mocks.iter().map(|mock| format!("http://{}", mock.address()));
        urls.collect::<Vec<_>>().join(",")
    }
}

fn scenario() -> String {
    let longer = TINY.replace("duration_s = 2", "duration_s = 5");
    longer.replace("[gateway]", &format!("{FAULT}\n[gateway]"))
}

#[test]
fn faults_are_made_in_the_upstreams_that_were_named_and_are_over_after() {
    let _alone = alone();
    let fleet = Fleet::start(true);
    let path = file("faults", &scenario());
    let (target, upstreams) = (fleet.target(), fleet.upstreams());
    let said =
        drill(&[path.to_str().unwrap(), "--target", &target, "--upstreams", &upstreams, "--json"]);
    assert_eq!(said.code, Some(1), "an upstream that fails is felt: {}\n{}", said.error, said.out);
    let report = said.report();
    let failed = |phase| figure(&report, "failed_share", "people", Some(phase));
    assert!(failed("fault") > 0.02, "{} {}", failed("fault"), notes(&report));
    assert_eq!((failed("before"), failed("after")), (0.0, 0.0));
    // The other one goes on: it is known by what it calls itself.
    assert!(figure(&report, "goodput_of_capacity", "healthy", Some("fault")) > 0.1);
    let url = format!("http://{}/mock/fault", fleet.mocks[1].address());
    let asked = Command::new("curl").args(["--silent", "--max-time", "5", &url]).output().unwrap();
    let faults: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(faults["failure_rate"], 0.0, "{faults}");
}

/// Further expectations of the scenario: before, during and after the fault.
const EXPECTED: &str = r#"
[[expect]]
what = "failed_share"
phase = "before"
max = 0

[[expect]]
what = "goodput_of_offered"
phase = "fault"
max = 2

[[expect]]
what = "recovery_s"
max = 1000
"#;

fn names(report: &Value, list: &str) -> Vec<String> {
    let all = report[list].as_array().unwrap().iter();
    all.map(|it| format!("{} {}", it["what"].as_str().unwrap(), it["phase"])).collect()
}

#[test]
fn without_upstreams_faults_are_left_out_and_nothing_is_judged_by_them() {
    let _alone = alone();
    let fleet = Fleet::start(false);
    let path = file("no-faults", &(scenario() + EXPECTED));
    let said = drill(&[path.to_str().unwrap(), "--target", &fleet.target(), "--json"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.error, said.out);
    assert!(said.error.contains("--upstreams"), "{}", said.error);
    let report = said.report();
    assert!(notes(&report).contains("was not injected"), "{}", notes(&report));
    assert_eq!(names(&report, "checks"), ["failed_share \"before\""]);
    assert!(!names(&report, "figures").iter().any(|it| it.starts_with("recovery_s")));
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
}

/// An upstream that takes faults until one comes: it calls itself a mock and sets nothing.
fn unwilling() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut asked = [0; 4096];
            let count = stream.read(&mut asked).unwrap_or(0);
            let status = if asked[..count].starts_with(b"GET") { "200 OK" } else { "500 No" };
            let head = "x-tidegate-mock: unwilling\r\nconnection: close\r\ncontent-length: 0";
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n{head}\r\n\r\n").as_bytes());
        }
    });
    address
}

#[test]
fn a_fault_that_could_not_be_set_is_not_judged_to_have_been_borne() {
    let _alone = alone();
    let fleet = Fleet::start(true);
    let path = file("unset", &(scenario() + EXPECTED));
    let upstreams = format!("http://{},http://{}", fleet.mocks[0].address(), unwilling());
    let args = ["--target", &fleet.target(), "--upstreams", &upstreams, "--json"];
    let said = drill(&[&[path.to_str().unwrap()], &args[..]].concat());
    assert_eq!(said.code, Some(1), "{}\n{}", said.error, said.out);
    let report = said.report();
    assert!(notes(&report).contains("fails was not set at"), "{}", notes(&report));
    let held = |check: &&Value| check["holds"] == true;
    let checks = report["checks"].as_array().unwrap();
    let phases: Vec<_> = checks.iter().filter(held).map(|check| &check["phase"]).collect();
    assert_eq!(phases, ["before"], "{checks:?}");
    assert!(checks.iter().filter(|it| !held(it)).all(|it| it["found"].is_null()), "{checks:?}");
    assert!(!names(&report, "figures").iter().any(|it| it.starts_with("recovery_s")));
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
}

#[test]
fn upstreams_that_can_not_be_made_to_fail_are_told_before_the_load() {
    let fleet = Fleet::start(false);
    let path = file("no-mock", &scenario());
    let refused = |upstreams: &str, says: &str| {
        let args = ["--target", &fleet.target(), "--upstreams", upstreams];
        drill(&[&[path.to_str().unwrap()], &args[..]].concat()).failed_with(1, &[says]);
    };
    refused(&fleet.upstreams(), "tidegate mock --faults");
    refused("http://127.0.0.1:1", "can't reach the upstream");
}
