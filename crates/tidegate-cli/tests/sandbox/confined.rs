//! Tasks that reach for resources of others.

use crate::bench::{Bench, Mode, PATIENCE, config, runs, unique, wait_until, work};
use crate::elsewhere::Elsewhere;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use tidegate::task::{EndReason, TaskOutcome};
use tidegate_server::tasks::sandbox::ProcessConfig;

const MODES: [Mode; 2] = [Mode::All, Mode::NoBubblewrap];
const EVERY_MODE: [Mode; 3] = [Mode::All, Mode::NoBubblewrap, Mode::WatcherOnly];

#[tokio::test]
async fn a_grandchild_in_a_session_of_its_own() {
    for mode in EVERY_MODE {
        let bench = Bench::new(mode).await;
        let mark = format!("{}.5", 100_000 + unique().replace('-', "").parse::<u64>().unwrap());
        let code = format!(
            "import os, sys\n\
             if os.fork() == 0:\n\
             \x20   os.setsid()\n\
             \x20   if os.fork() == 0: os.execvp('sleep', ['sleep', '{mark}'])\n\
             \x20   os._exit(0)\n\
             os.wait(); print('left')"
        );
        let ran = bench.run("python", &code).await;
        assert_eq!(ran.out, "left\n", "{mode:?} {}", ran.story());
        assert_eq!(ran.ending.outcome, TaskOutcome::Succeeded, "{}", ran.story());
        assert_eq!(ran.ending.stopped, ["leftover_processes"], "{mode:?}");
        assert!(!runs(&mark), "{mode:?}: it outlived its task");
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn what_leaves_a_moment_later_is_no_leftover() {
    for mode in MODES {
        // It is waited for until it has left, however long a busy machine takes for that.
        let patient = ProcessConfig { leave_within: PATIENCE / 2, ..config(mode) };
        let bench = Bench::with(patient).await;
        let ran = bench.run("sh", "sleep 0.01 & echo done").await;
        assert_eq!((ran.ending.stopped.len(), ran.out.as_str()), (0, "done\n"), "{}", ran.story());
    }
}

#[tokio::test]
async fn a_write_outside_of_the_work_folder() {
    // A folder that anybody may write to: nothing but the sandbox is in the way.
    let outside = std::env::temp_dir().join(format!("tidegate-outside-{}", unique()));
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    let file = outside.join("file");
    for mode in MODES {
        let bench = Bench::new(mode).await;
        for target in ["/etc/tidegate-escape", "/usr/tidegate-escape", "/tidegate-escape"] {
            for (runtime, code) in [
                ("python", format!("open('{target}', 'w').write('x')")),
                ("sh", format!("echo x > {target}")),
            ] {
                let ran = bench.run(runtime, &code).await;
                assert_eq!(ran.ending.reason, EndReason::WriteDenied, "{mode:?} {}", ran.story());
                assert!(!fs::exists(target).unwrap());
            }
        }
        let code = format!("open('{}', 'w').write('x')", file.display());
        let ran = bench.run("python", &code).await;
        assert_eq!(ran.ending.outcome, TaskOutcome::Failed, "{mode:?} {}", ran.story());
        assert!(!file.exists());
        bench.assert_healthy().await;
    }
    fs::remove_dir_all(outside).unwrap();
}

#[tokio::test]
async fn a_denial_that_is_not_the_sandbox_s() {
    for mode in MODES {
        let bench = Bench::new(mode).await;
        for (code, exit_code) in [
            ("echo x > secret; chmod 000 secret; cat secret", 1),
            ("echo x > secret; chmod 000 secret; cat $HOME/secret", 1),
            ("echo x > tool; ./tool", 126),
            ("echo 'git@example.org: Permission denied (publickey).' >&2; exit 255", 255),
        ] {
            let ran = bench.run("sh", code).await;
            assert_eq!(ran.ending.reason, EndReason::Exit, "{mode:?} {code} {}", ran.story());
            assert_eq!(ran.ending.exit_code, Some(exit_code), "{mode:?} {}", ran.story());
            assert!(ran.ending.message.contains("Permission denied"), "{mode:?} {}", ran.story());
        }
    }
}

#[tokio::test]
async fn its_code_is_not_its_own_to_change() {
    for mode in MODES {
        let ran = Bench::new(mode).await.run("python", "open(__file__, 'a').write('x')").await;
        assert_eq!(ran.ending.reason, EndReason::WriteDenied, "{mode:?} {}", ran.story());
    }
}

#[tokio::test]
async fn a_network_call() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = format!("import socket; socket.create_connection(('127.0.0.1', {port}), 5)");
    for mode in MODES {
        let bench = Bench::with_odd_runtimes(mode).await;
        for (runtime, code) in [
            ("python", code.clone()),
            ("offline", code.clone()),
            (
                "python",
                "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)".to_owned(),
            ),
            ("sh", format!("python3 -c \"{code}\"")),
        ] {
            let ran = bench.run(runtime, &code).await;
            let reason = ran.ending.reason;
            assert_eq!(reason, EndReason::NetworkDenied, "{mode:?} {runtime} {}", ran.story());
        }
        assert!(listener.accept().is_err(), "nobody came");
        let mut elsewhere = Elsewhere::start();
        let code = code.replace(&port.to_string(), &elsewhere.port.to_string());
        let ran = bench.run("online", &code).await;
        assert_eq!(ran.ending.outcome, TaskOutcome::Succeeded, "{mode:?} {}", ran.story());
        assert_eq!(elsewhere.line(), "came", "who may, does");
        let local = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
        assert_eq!(bench.run("python", local).await.out, "b'x'\n");
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_task_that_may_go_on_without_the_network_does() {
    let code = "import socket\n\
                try: socket.socket()\n\
                except OSError as e: print(e.errno)";
    for mode in MODES {
        let ran = Bench::with_odd_runtimes(mode).await.run("offline", code).await;
        assert_eq!((ran.out.as_str(), ran.ending.exit_code), ("101\n", Some(0)), "{}", ran.story());
    }
}

#[tokio::test]
async fn calls_that_no_task_may_make() {
    for mode in MODES {
        let bench = Bench::new(mode).await;
        for call in ["unshare --user true", "unshare --mount true", "mount -t tmpfs none ."] {
            let ran = bench.run("sh", call).await;
            assert_ne!(ran.ending.outcome, TaskOutcome::Succeeded, "{mode:?} {call}");
            // mount(8) looks at the user before it tries.
            if call.starts_with("unshare") {
                assert_eq!(ran.ending.reason, EndReason::CallDenied, "{mode:?} {}", ran.story());
            }
        }
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_task_has_no_privileges() {
    let code =
        "grep -E '^(CapEff|CapPrm|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status; id -u; id -G";
    for mode in MODES {
        let ran = Bench::new(mode).await.run("sh", code).await;
        let none = "0000000000000000";
        let expected = format!(
            "CapPrm:\t{none}\nCapEff:\t{none}\nCapAmb:\t{none}\nNoNewPrivs:\t1\nSeccomp:\t2\n"
        );
        assert!(ran.out.starts_with(&expected), "{mode:?} {}", ran.story());
        if rustix::process::geteuid().is_root() {
            let ids: Vec<u32> = ran.out.lines().skip(5).map(|id| id.parse().unwrap()).collect();
            assert!(ids.iter().all(|id| (60_800..61_056).contains(id)), "{ids:?}");
        }
    }
}

#[tokio::test]
async fn tasks_do_not_see_each_other() {
    for mode in MODES {
        let bench = Bench::new(mode).await;
        let secret = unique();
        // It says where it is, and stays until it is told that the other has looked.
        let first =
            work("sh", &format!("echo {secret} > secret; echo $TIDEGATE_WORK; exec sleep 60"));
        let (switch, stop) = tidegate_server::tasks::execution::StopSignal::new();
        let sink = tidegate_server::tasks::execution::OutputSink::new(1 << 10);
        let progress = tidegate_server::tasks::execution::ProgressSink::new();
        let stdout = tidegate::task::OutputStream::Stdout;
        let second = async {
            while !sink.text(stdout).ends_with('\n') {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            let place = sink.text(stdout).trim().to_owned();
            let look = format!(
                "cat {place}/home/secret {place}/../*/home/secret /tmp/*/*/*/home/secret\n\
                 ls {place}/home\n cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep {place}\n\
                 {}\n true",
                bench.kill_everybody()
            );
            let ran = bench.run("sh", &look).await;
            switch.stop(tidegate_server::tasks::execution::StopReason::Cancelled);
            ran
        };
        let (first, second) =
            tokio::join!(bench.runner.run(&first, &sink, &progress, stop), second);
        assert_eq!(first.outcome, TaskOutcome::Cancelled, "the other could not end it: {first:?}");
        assert!(!second.out.contains(&secret), "{mode:?} {}", second.story());
        assert!(!second.out.contains("secret"), "{mode:?} {}", second.story());
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_task_that_kills_everybody_it_can() {
    for mode in MODES {
        let bench = Bench::new(mode).await;
        let mark = format!("{}.25", 100_000 + unique().replace('-', "").parse::<u64>().unwrap());
        let code = format!(
            "setsid sleep {mark} &\nkill -9 $PPID; {}; sleep 0.1; echo still",
            bench.kill_everybody()
        );
        let ran = bench.run("sh", &code).await;
        wait_until("the task is gone", || !runs(&mark));
        assert_ne!(ran.ending.reason, EndReason::NotStarted, "{}", ran.story());
        bench.assert_healthy().await;
    }
}
