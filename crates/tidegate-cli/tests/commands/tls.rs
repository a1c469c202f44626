//! Commands that talk to a node with TLS on every port, and a worker behind TLS.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, commands_to_try, refused, shell};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const CLIENT: &str = "tg_client-a-0123456789";
const OPERATOR: &str = "tg_operator-0123456789";
const WORKER: &str = "tg_worker-0123456789";

/// A folder with `ca.pem`, and certificates of that authority.
struct Folder(PathBuf);

/// A process that ends with its test.
struct Process {
    child: Child,
    banner: String,
}

impl Folder {
    /// With a certificate and key of localhost under each of these names.
    fn new(names: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        for name in names {
            let key = KeyPair::generate().unwrap();
            let hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            let issued = CertificateParams::new(hosts).unwrap().signed_by(&key, &issuer).unwrap();
            std::fs::write(folder.join(format!("{name}.pem")), issued.pem()).unwrap();
            let file = folder.join(format!("{name}.key"));
            std::fs::write(&file, key.serialize_pem()).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self(folder)
    }

    /// A command in this folder, without what the tests' own environment has.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(args).current_dir(&self.0).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn start(&self, command: &mut Command) -> Process {
        let log = std::fs::File::create(self.0.join("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        Process { child, banner }
    }

    /// A node with TLS on all ports, a client and an operator.
    fn node(&self, more: &str, args: &[&str]) -> Process {
        let config = format!(
            "[tls]\ncert = \"node.pem\"\nkey = \"node.key\"\n{more}\n[claims]\nanonymous = \"refuse\"\n\
             [[client]]\nname = \"a\"\ntoken = \"{CLIENT}\"\n\
             [[operator]]\nname = \"ops\"\ntoken = \"{OPERATOR}\"\n"
        );
        let file = self.0.join("tidegate.toml");
        std::fs::write(&file, config).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let free = "127.0.0.1:0";
        let mut command = self.command(&["up", "--listen", free, "--admin-listen", free]);
        command.args(["--frames-listen", free, "--lines-listen", free]);
        command.args(args).env("WORKER_TOKEN", WORKER);
        self.start(&mut command)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(err));
    String::from_utf8_lossy(out).into_owned()
}

#[test]
fn every_command_speaks_tls_with_a_ca() {
    let folder = Folder::new(&["node"]);
    let node = folder.node("", &["--set", "tasks.executor=mock"]);
    let admin = banner_url(&node.banner, "operators");
    assert!(admin.starts_with("https://127.0.0.1:"), "{}", node.banner);
    let curls = node.banner.lines().filter(|line| line.trim_start().starts_with("curl"));
    for line in curls {
        let mut command = Command::new("sh");
        command.args(["-c", &line.replacen("curl", "curl --fail", 1)]).current_dir(&folder.0);
        succeeded(&command.env("TIDEGATE_TOKEN", OPERATOR).output().unwrap());
        assert!(line.contains("--cacert ca.pem"), "{line}");
    }
    let asked = |args: &[&str]| {
        let mut command = folder.command(&args[..1]);
        // A threshold has commands of its own.
        let (first, rest) =
            if args[0] == "threshold" { (&args[1..2], &args[2..]) } else { (&[][..], &args[1..]) };
        command.args(first).args(["--admin", &admin, "--ca", "ca.pem"]).args(rest);
        succeeded(&command.env("TIDEGATE_TOKEN", OPERATOR).output().unwrap())
    };
    let task = ["submit", "--id", "t", "--runtime", "sh", "--code", "print hello", "--wait"];
    asked(&task);
    assert!(asked(&["status", "t"]).contains("succeeded"));
    assert!(asked(&["status"]).contains("slots:"));
    assert!(asked(&["tasks"]).contains("succeeded"));
    asked(&["logs", "t"]);
    assert!(asked(&["upstreams"]).contains("127.0.0.1"));
    // The gateway learns the models of its upstreams soon after the start.
    let since = Instant::now();
    while !asked(&["threshold", "get"]).contains("tidegate-mock") {
        assert!(since.elapsed() < Duration::from_secs(60), "the mocks tell no model");
        std::thread::sleep(Duration::from_millis(50));
    }
    asked(&["threshold", "set", "tidegate-mock", "--active-requests-threshold", "7"]);
    assert!(asked(&["threshold", "get"]).contains('7'));
    asked(&["submit", "--id", "c", "--runtime", "sh", "--code", "hang"]);
    asked(&["cancel", "c"]);

    std::fs::write(folder.0.join("usage.lp"), "calls,tenant=a quantity=3 1700000000000000000\n")
        .unwrap();
    let frames = banner_url(&node.banner, "frames").trim_end_matches(',').to_owned();
    let sent =
        folder.command(&["send", "usage.lp", "--to", &frames, "--ca", "ca.pem", "--timeout", "30"]);
    succeeded(&{ sent }.output().unwrap());
    assert!(asked(&["usage", "--since", "2023-11-01"]).contains('a'));
}

#[test]
fn a_node_that_is_not_trusted_gets_nothing_and_files_are_checked_first() {
    let (folder, others) = (Folder::new(&["node"]), Folder::new(&[]));
    let node = folder.node("", &["--tasks", "false"]);
    let admin = banner_url(&node.banner, "operators");
    let other = others.0.join("ca.pem").display().to_string();
    let run = |args: &[&str]| folder.command(args).output().unwrap();
    let untrusted = ["no authority in", "has issued its certificate", "--ca FILE"];
    refused(&run(&["status", "--admin", &admin, "--ca", &other]), 1, &untrusted);
    let plain = admin.replace("https", "http");
    refused(&run(&["status", "--admin", &plain]), 1, &["speaks TLS", &admin, "--ca FILE"]);
    let closed = run(&["upstreams", "--admin", &admin, "--ca", "ca.pem"]);
    refused(&closed, 1, &["TIDEGATE_TOKEN or --token"]);
    let ftp = ["expected http:// or https://"];
    refused(&run(&["status", "--admin", "ftp://127.0.0.1:1"]), 2, &ftp);
    refused(
        &run(&["status", "--admin", &admin, "--ca", "none.pem"]),
        1,
        &["none.pem is no readable PEM"],
    );
    refused(&run(&["status", "--admin", &admin, "--cert", "node.pem"]), 2, &["--cert-key"]);
    let frames = banner_url(&node.banner, "frames").trim_end_matches(',').to_owned();
    std::fs::write(folder.0.join("u.lp"), "calls,tenant=a quantity=3 1700000000000000000\n")
        .unwrap();
    // A retry can't help, so no timeout is needed.
    let to = ["send", "u.lp", "--to", &frames];
    refused(&run(&[&to[..], &["--ca", &other]].concat()), 1, &untrusted);
    refused(&run(&to), 1, &["speaks TLS", "--tls", "--ca FILE"]);
}

#[test]
fn a_command_shows_a_certificate_to_a_node_that_asks_for_one() {
    let folder = Folder::new(&["node", "me"]);
    let node = folder.node("client_ca = \"ca.pem\"", &["--tasks", "false", "--ingest", "false"]);
    let admin = banner_url(&node.banner, "operators");
    let asked = |env: &[(&str, &str)]| {
        let mut command = folder.command(&["upstreams", "--admin", &admin]);
        let env =
            env.iter().copied().chain([("TIDEGATE_TOKEN", OPERATOR), ("TIDEGATE_CA", "ca.pem")]);
        command.envs(env).output().unwrap()
    };
    refused(&asked(&[]), 1, &["client certificate", "--cert FILE", "--cert-key FILE"]);
    succeeded(&asked(&[("TIDEGATE_CERT", "me.pem"), ("TIDEGATE_CERT_KEY", "me.key")]));
}

#[test]
fn a_worker_behind_tls_runs_the_tasks_of_a_manager() {
    let folder = Folder::new(&["node"]);
    let mut worker = folder.command(&["worker", "--executor", "mock", "--listen", "127.0.0.1:0"]);
    worker.args(["--tls-cert", "node.pem", "--tls-key", "node.key"]);
    let worker = folder.start(worker.env("TIDEGATE_WORKER_TOKEN", WORKER));
    let url = banner_url(&worker.banner, "clients");
    assert!(url.starts_with("https://"), "{url}");
    let executor = format!(
        "[tasks]\ntls_ca = \"ca.pem\"\n[[executor]]\nurl = \"{url}\"\ntoken_env = \"WORKER_TOKEN\"\n"
    );
    let node = folder.node(&executor, &["--ingest", "false"]);
    let admin = banner_url(&node.banner, "operators");
    let mut submit =
        folder.command(&["submit", "--admin", &admin, "--ca", "ca.pem", "--runtime", "sh"]);
    let submit = submit.args(["--code", "print hello", "--wait"]).env("TIDEGATE_TOKEN", OPERATOR);
    succeeded(&submit.output().unwrap());
}

#[test]
fn what_a_banner_says_to_try_works_with_tls_and_certificates() {
    let folder = Folder::new(&["node", "me"]);
    let mut worker = folder.command(&["worker", "--executor", "mock", "--listen", "127.0.0.1:0"]);
    worker.args(["--tls-cert", "node.pem", "--tls-key", "node.key", "--tls-client-ca", "ca.pem"]);
    let worker = folder.start(worker.env("TIDEGATE_WORKER_TOKEN", WORKER));
    let lines = commands_to_try(&worker.banner);
    assert_eq!(lines.len(), 3, "{}", worker.banner);
    for line in lines {
        let mut command = shell(&line, &folder.0);
        succeeded(&command.env("TIDEGATE_WORKER_TOKEN", WORKER).output().unwrap());
    }
    let node = folder.node("client_ca = \"ca.pem\"", &["--set", "tasks.executor=mock"]);
    let lines = commands_to_try(&node.banner);
    assert_eq!(lines.len(), 4, "{}", node.banner);
    for line in lines {
        let mut command = shell(&line, &folder.0);
        succeeded(&command.env("TIDEGATE_TOKEN", OPERATOR).output().unwrap());
    }
}

#[test]
fn files_that_can_not_be_used_are_told_all_at_once_with_2() {
    let folder = Folder::new(&["node", "other"]);
    std::fs::copy(folder.0.join("other.key"), folder.0.join("node.key")).unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(folder.0.join("other.key"), open).unwrap();
    let config = "[tls]\ncert = \"node.pem\"\nkey = \"node.key\"\n\
                  [listen]\nadmin_tls_cert = \"other.pem\"\nadmin_tls_key = \"other.key\"\n";
    std::fs::write(folder.0.join("tidegate.toml"), config).unwrap();
    let output = folder.command(&["up"]).output().unwrap();
    let says = ["2 errors in TLS files", "data, frames, lines: ", "admin: every user can read"];
    refused(&output, 2, &says);
    let worker =
        ["worker", "--executor", "mock", "--tls-cert", "other.pem", "--tls-key", "other.key"];
    refused(&folder.command(&worker).output().unwrap(), 2, &["worker: every user can read"]);
    let both = [&worker[..], &["--tls", "off"]].concat();
    refused(&folder.command(&both).output().unwrap(), 2, &["--tls off", "leave one out"]);
}
