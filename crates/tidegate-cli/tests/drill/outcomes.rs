//! Drills on a test bed: expectations met, expectations missed, and an early stop.

use super::foreign::Server;
use super::program::{Said, alone, command, drill, figure, file, notes};
use super::upstreams::TINY;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn what_was_expected_came_and_machines_can_read_it() {
    let _alone = alone();
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drill.html");
    let tiny = file("tiny", TINY);
    let said = drill(&[tiny.to_str().unwrap(), "--json", "--html", page.to_str().unwrap()]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.error, said.out);
    let report = said.report();
    assert_eq!((report["mode"].as_str(), report["seed"].as_u64()), (Some("drill"), Some(3)));
    // Half of 2 × 4 places of 20 ms, of which all are had.
    assert_eq!(report["capacity_per_s"], 400.0);
    let good = figure(&report, "goodput_of_offered", "people", None);
    assert!(good > 0.99, "{good}");
    let median = figure(&report, "latency_p50_ms", "people", None);
    assert!(median >= 20.0, "{median}");
    // A busy machine makes both slower alike.
    let control = figure(&report, "latency_p50_ms", "control", None);
    assert!(control < median, "the control plane is not asked for work: {control} and {median}");
    let schedule = &report["schedule"];
    assert!(schedule["due"].as_u64().unwrap() > 350, "{schedule}");
    assert_eq!(schedule["unsent"], 0);
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["holds"] == true));
    assert!(said.error.contains(page.to_str().unwrap()), "{}", said.error);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<html") && html.contains("people"), "{html}");
    std::fs::remove_file(&page).unwrap();
}

#[test]
fn the_same_over_http2_with_tenants_and_bodies() {
    let _alone = alone();
    let text =
        TINY.replace("priority = \"high\"", "tenant = \"acme\"\nbody_bytes = 20000").replace(
            "[upstreams]",
            "[[gateway.tenant]]\nname = \"acme\"\nmax_priority = \"normal\"\n[upstreams]",
        );
    let tiny = file("h2", &text);
    let said = drill(&[tiny.to_str().unwrap(), "--json", "--protocol", "h2", "--duration", "1s"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.error, said.out);
    let report = said.report();
    assert_eq!(report["duration_s"], 1.0);
    let connections = report["schedule"]["connections_max"].as_u64().unwrap();
    assert!(connections < 10, "a connection has room for many: {connections}");
    assert!(figure(&report, "goodput_of_offered", "tenant:acme", None) > 0.99);
}

#[test]
fn what_could_not_come_is_named() {
    let _alone = alone();
    // Within 5 ms of work that takes 20 ms.
    let text = TINY.replace("max = 2000", "max = 5\nwhy = \"it can't\"");
    let tiny = file("missed", &text);
    let said = drill(&[tiny.to_str().unwrap(), "--duration", "1s"]);
    assert_eq!(said.code, Some(1), "{}\n{}", said.error, said.out);
    let missed = said.out.lines().find(|line| line.contains("MISSED")).unwrap();
    assert!(missed.contains("latency_p50_ms"), "{missed}");
    assert!(said.out.contains("held"), "{}", said.out);
}

#[test]
fn ctrl_c_ends_it_and_what_was_measured_is_reported() {
    let _alone = alone();
    let (tiny, server) = (file("stopped", TINY), Server::start(usize::MAX));
    let url = format!("http://{}", server.address);
    let args = [tiny.to_str().unwrap(), "--target", &url, "--json", "--duration", "60s"];
    let child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Half a second of them.
    while server.count() < 100 {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{}\n{}", said.error, said.out);
    let report = said.report();
    let ran_s = report["duration_s"].as_f64().unwrap();
    assert!(ran_s > 0.0 && ran_s < 50.0, "{ran_s}");
    assert!(notes(&report).contains("Stopped after"), "{}", notes(&report));
    assert_eq!(report["checks"].as_array().unwrap().len(), 0);
    assert_eq!(report["stopped"], true);
    let command = report["command"].as_str().unwrap();
    assert!(command.starts_with("tidegate drill "), "{command}");
    for typed in [tiny.to_str().unwrap(), " --duration 60s", &format!(" --target {url}")] {
        assert!(command.contains(typed), "{command} has no {typed}");
    }
    let good = figure(&report, "goodput_of_capacity", "people", None);
    // Half of capacity as a rule, and less where the machine was busy; of all 60 s it would be next to nothing.
    let of_all = server.count() as f64 / (report["capacity_per_s"].as_f64().unwrap() * 60.0);
    assert!(good > 3.0 * of_all && good < 0.7, "of the time that it ran: {good}, not {of_all}");
}

#[test]
fn a_page_that_can_not_be_written_is_told_before_the_load() {
    let tiny = file("no-page", TINY);
    let began = Instant::now();
    let args = [tiny.to_str().unwrap(), "--html", "/nowhere/at/all.html", "--duration", "600s"];
    drill(&args).failed_with(2, &["/nowhere/at/all.html", "--html"]);
    assert!(began.elapsed() < Duration::from_secs(60), "it has not run: {:?}", began.elapsed());
}

#[test]
fn what_was_measured_is_printed_also_when_the_page_can_not_be_written_in_the_end() {
    let _alone = alone();
    let tiny = file("lost-page", TINY);
    // It can be opened, and is always full.
    let said = drill(&[tiny.to_str().unwrap(), "--html", "/dev/full", "--json"]);
    said.failed_with(1, &["can't write /dev/full"]);
    assert!(said.report()["schedule"]["due"].as_u64().unwrap() > 350);
}

#[test]
fn a_drill_that_fails_leaves_no_page() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drill-none.html");
    let tiny = file("no-drill", TINY);
    let args = ["--target", "http://127.0.0.1:1", "--html", page.to_str().unwrap()];
    drill(&[&[tiny.to_str().unwrap()], &args[..]].concat()).failed_with(1, &["can't reach"]);
    assert!(!page.exists());
}
