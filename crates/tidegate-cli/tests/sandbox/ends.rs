//! Tasks that end as they should, or are asked to.

use crate::bench::{Bench, Mode, PATIENCE, Ran, config, work};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::task::{EndReason, TaskOutcome};
use tidegate_server::tasks::execution::{StopReason, Work};
use tidegate_server::tasks::sandbox::ProcessConfig;

const EVERY_MODE: [Mode; 3] = [Mode::All, Mode::NoBubblewrap, Mode::WatcherOnly];

fn reason(ran: &Ran) -> (TaskOutcome, EndReason) {
    (ran.ending.outcome, ran.ending.reason)
}

#[tokio::test]
async fn a_task_gets_its_arguments_and_variables_and_nothing_else() {
    let code = "import os, sys\n\
                print(sys.argv[1:], os.environ['GREETING'], os.getcwd() == os.environ['HOME'])\n\
                print(sorted(os.environ))\n\
                open('file', 'w').write('x'); open(os.environ['TMPDIR'] + '/f', 'w').write('y')\n\
                print('to the other', file=sys.stderr); sys.exit(7)";
    let work = Work {
        args: vec!["a b".to_owned(), "ç".to_owned()],
        env: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        ..work("python", code)
    };
    for mode in EVERY_MODE {
        let bench = Bench::new(mode).await;
        let ran = bench.run_work(&work).await;
        let variables = "['GREETING', 'HOME', 'LANG', 'PATH', 'PYTHONDONTWRITEBYTECODE', \
                         'PYTHONUNBUFFERED', 'TIDEGATE_PROGRESS_FD', 'TIDEGATE_WORK', 'TMPDIR']";
        let expected = format!("['a b', 'ç'] hello True\n{variables}\n");
        assert_eq!(ran.out, expected, "{mode:?} {}", ran.story());
        assert_eq!(ran.err, "to the other\n");
        assert_eq!(reason(&ran), (TaskOutcome::Failed, EndReason::Exit));
        assert_eq!(ran.ending.exit_code, Some(7));
        assert_eq!(ran.ending.message, "to the other");
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_task_that_runs_for_too_long() {
    for mode in EVERY_MODE {
        // Who wants to leave well is not killed, however long a busy machine takes to let it.
        let patient = ProcessConfig { grace: PATIENCE / 2, ..config(mode) };
        let bench = Bench::with(patient).await;
        let polite = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
        let (ran, _) = run_for_too_long(&bench, polite).await;
        assert_eq!(
            reason(&ran),
            (TaskOutcome::Failed, EndReason::Timeout),
            "{mode:?} {}",
            ran.story()
        );
        let left = (ran.out.as_str(), ran.ending.exit_code);
        assert_eq!(left, ("ready\nbye\n", Some(3)), "{mode:?}: it was asked");
        bench.assert_healthy().await;
        let bench = Bench::new(mode).await;
        let deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
        let (ran, timeout) = run_for_too_long(&bench, deaf).await;
        assert_eq!(
            reason(&ran),
            (TaskOutcome::Failed, EndReason::Timeout),
            "{mode:?} {}",
            ran.story()
        );
        assert_eq!(ran.ending.exit_code, None, "it was killed");
        let least = timeout + config(mode).grace;
        let ran = Duration::from_millis(ran.ending.ran_ms + 1);
        assert!(ran >= least, "{mode:?}: not before its grace was over, but after {ran:?}");
        bench.assert_healthy().await;
    }
}

/// Runs it until its time is over, and says how much it had: enough to become ready.
async fn run_for_too_long(bench: &Bench, code: &str) -> (Ran, Duration) {
    let mut timeout = Duration::from_secs(1);
    loop {
        let ran = bench.run_work(&Work { timeout, ..work("sh", code) }).await;
        if ran.out.starts_with("ready\n") {
            return (ran, timeout);
        }
        timeout *= 2;
        assert!(timeout < PATIENCE / 2, "it is never ready: {}", ran.story());
    }
}

#[tokio::test]
async fn a_task_that_is_told_to_stop() {
    let code = "echo on; exec sleep 60";
    for mode in EVERY_MODE {
        let bench = Bench::new(mode).await;
        for (why, expected) in [
            (StopReason::Cancelled, EndReason::Cancelled),
            (StopReason::LeaseExpired, EndReason::LeaseExpired),
            (StopReason::Draining, EndReason::Cancelled),
        ] {
            let ran = bench.stop_when_heard(&work("sh", code), why).await;
            assert_eq!(
                reason(&ran),
                (TaskOutcome::Cancelled, expected),
                "{mode:?} {}",
                ran.story()
            );
        }
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_signal_of_its_own_is_named() {
    for mode in EVERY_MODE {
        let ran = Bench::new(mode).await.run("sh", "kill -SEGV $$").await;
        assert_eq!(
            reason(&ran),
            (TaskOutcome::Failed, EndReason::Signal),
            "{mode:?} {}",
            ran.story()
        );
        assert_eq!(ran.ending.message, "signal 11 ended it");
    }
}

#[tokio::test]
async fn a_runtime_that_is_not_there() {
    let ran = Bench::new(Mode::All).await.run("cobol", "DISPLAY 'X'.").await;
    assert_eq!(reason(&ran), (TaskOutcome::Failed, EndReason::NotStarted));
    let message = "no runtime \"cobol\"; available: python, sh";
    assert_eq!(ran.ending.message, message);
}

#[tokio::test]
async fn many_at_one_time() {
    for mode in [Mode::All, Mode::NoBubblewrap] {
        let bench = Bench::new(mode).await;
        let one = |n: u32| {
            let bench = &bench;
            async move {
                let ran = bench.run("sh", &format!("sleep 0.2; echo {n}")).await;
                assert_eq!(ran.out, format!("{n}\n"), "{mode:?} {}", ran.story());
            }
        };
        tokio::join!(one(1), one(2), one(3), one(4), one(5), one(6), one(7), one(8));
        bench.assert_healthy().await;
    }
}
