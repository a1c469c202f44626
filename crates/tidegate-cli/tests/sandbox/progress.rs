//! Tasks that report their progress, rightly and wrongly.

use crate::bench::{Bench, Mode, Ran, config, small, work};
use std::collections::BTreeMap;
use tidegate::progress::{Progress, parse_line};
use tidegate::task::TaskOutcome;
use tidegate_server::tasks::execution::Work;
use tidegate_server::tasks::sandbox::RuntimeConfig;

const EVERY_MODE: [Mode; 3] = [Mode::All, Mode::NoBubblewrap, Mode::WatcherOnly];

/// The report of the documentation.
const REPORT: &str = r#"{"counters": {"rows": 1200}, "gauges": {"loss": 0.31}, "message": "epoch 3", "done": 3, "total": 10}"#;

/// The helper that users copy.
const HELPER: &str = include_str!("../../../../docs/tidegate_progress.py");

fn notices(ran: &Ran) -> Vec<&str> {
    ran.err.lines().filter(|line| line.starts_with("tidegate: progress line ignored: ")).collect()
}

fn assert_succeeded(mode: Mode, ran: &Ran) {
    assert_eq!(ran.ending.outcome, TaskOutcome::Succeeded, "{mode:?} {}", ran.story());
}

#[tokio::test]
async fn every_runtime_reports_with_every_set_of_layers() {
    let awk = RuntimeConfig { args: vec!["-f".to_owned()], ..RuntimeConfig::new("awk", "awk") };
    let quoted = REPORT.replace('"', "\\\"");
    for mode in EVERY_MODE {
        let mut config = config(mode);
        config.runtimes.push(small(awk.clone()));
        let bench = Bench::with(config).await;
        for (runtime, code) in [
            ("sh", format!("echo '{REPORT}' >&$TIDEGATE_PROGRESS_FD")),
            ("sh", format!("(printf '%s' '{REPORT}' >&$TIDEGATE_PROGRESS_FD)")),
            (
                "python",
                format!(
                    "import os; os.write(int(os.environ['TIDEGATE_PROGRESS_FD']), b'{REPORT}\\n')"
                ),
            ),
            (
                "awk",
                format!(
                    "BEGIN {{ print \"{quoted}\" | \"cat >&\" ENVIRON[\"TIDEGATE_PROGRESS_FD\"] }}"
                ),
            ),
        ] {
            let ran = bench.run(runtime, &code).await;
            assert_succeeded(mode, &ran);
            let expected = parse_line(REPORT.as_bytes()).unwrap();
            assert_eq!(ran.progress.progress, expected, "{mode:?} {runtime} {}", ran.story());
            assert_eq!((ran.progress.version, ran.progress.ignored), (1, 0), "{mode:?} {runtime}");
        }
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn reports_in_a_tight_loop_are_sampled_and_no_count_is_lost() {
    let code = "import os\n\
                fd = int(os.environ['TIDEGATE_PROGRESS_FD'])\n\
                os.write(fd, b'{\"counters\": {\"first\": 7}}\\n')\n\
                for chunk in range(200):\n\
                \x20   first = chunk * 1000\n\
                \x20   lines = (b'{\"counters\": {\"rows\": %d}}\\n' % n for n in range(first, first + 1000))\n\
                \x20   os.write(fd, b''.join(lines))\n\
                print('done')";
    for mode in EVERY_MODE {
        let ran = Bench::new(mode).await.run("python", code).await;
        assert_succeeded(mode, &ran);
        let expected = BTreeMap::from([("first".into(), 7), ("rows".into(), 199_999)]);
        assert_eq!(ran.progress.progress.counters, expected, "{mode:?} {}", ran.story());
        assert_eq!(ran.progress.ignored, 0);
        assert!(ran.progress.version < 20_000, "{} changes of 200,000", ran.progress.version);
    }
}

#[tokio::test]
async fn garbage_is_counted_said_a_few_times_and_the_task_goes_on() {
    let code = "import os, sys\n\
                fd = int(os.environ['TIDEGATE_PROGRESS_FD'])\n\
                def report(line):\n\
                \x20   while line: line = line[os.write(fd, line):]\n\
                print('half a line', end='', file=sys.stderr, flush=True)\n\
                report(b'x' * (10 << 20) + b'\\n')\n\
                report(b'nope\\n{\"counter\": {}}\\n')\n\
                report(b'\\xff\\x00\\n' * 100)\n\
                report(b'{\"done\": 1}\\n')\n\
                print('done')";
    for mode in EVERY_MODE {
        let ran = Bench::new(mode).await.run("python", code).await;
        assert_succeeded(mode, &ran);
        assert_eq!(ran.out, "done\n");
        assert_eq!(ran.progress.progress, Progress { done: Some(1), ..Progress::default() });
        assert_eq!(ran.progress.ignored, 103, "{mode:?} {}", ran.story());
        let notices = notices(&ran);
        assert_eq!(notices.len(), 3, "{mode:?} {}", ran.story());
        assert!(notices[0].ends_with("it is longer than 65536 bytes"), "{notices:?}");
        assert!(notices[1].contains("it is not JSON"), "{notices:?}");
        assert!(notices[2].contains("unknown field `counter`"), "{notices:?}");
        assert!(ran.err.starts_with("half a line\ntidegate: "), "{}", ran.story());
    }
}

#[tokio::test]
async fn names_beyond_the_limit_are_counted_and_known_ones_go_on() {
    let code = "for n in $(seq 100); do echo '{\"counters\": {\"c'$n'\": 1}}'; done \
                >&$TIDEGATE_PROGRESS_FD\n\
                echo '{\"counters\": {\"c1\": 2}}' >&$TIDEGATE_PROGRESS_FD";
    let ran = Bench::new(Mode::All).await.run("sh", code).await;
    let progress = &ran.progress.progress;
    assert_eq!((progress.counters.len(), ran.progress.ignored), (32, 68), "{}", ran.story());
    assert_eq!(progress.counters.get("c1"), Some(&2));
    assert!(notices(&ran)[0].contains("too many names"), "{}", ran.story());
}

#[tokio::test]
async fn the_python_helper_reports_and_never_fails() {
    let calls = "progress(counters={'rows': 1200}, gauges={'loss': 0.31}, message='epoch 3')\n\
                 progress(done=3, total=10.0)\n\
                 progress()\n";
    let expected = parse_line(REPORT.as_bytes()).unwrap();
    for mode in EVERY_MODE {
        let bench = Bench::new(mode).await;
        let ran = bench.run("python", &format!("{HELPER}\n{calls}")).await;
        assert_succeeded(mode, &ran);
        assert_eq!(ran.progress.progress, expected, "{mode:?} {}", ran.story());
        assert_eq!((ran.progress.ignored, ran.err.as_str()), (0, ""));
        for without in [
            "os.close(int(os.environ['TIDEGATE_PROGRESS_FD']))",
            "del os.environ['TIDEGATE_PROGRESS_FD']",
        ] {
            let code = format!("{HELPER}\n{without}\n{calls}print('done')");
            let ran = bench.run("python", &code).await;
            assert_eq!((ran.out.as_str(), ran.err.as_str()), ("done\n", ""), "{}", ran.story());
            assert_eq!(ran.progress.version, 0);
        }
    }
}

/// Counts are cumulative, so reports that are not read one by one lose no value.
#[tokio::test]
async fn a_histogram_of_the_python_helper_has_every_value() {
    let code = format!(
        "{HELPER}\n\
         values = Histogram(5, 1, 25)\n\
         for value in range(30000):\n\
         \x20   values.observe(value % 30)\n\
         \x20   if value % 10 == 0: progress(histograms={{'ms': values}})\n\
         progress(histograms={{'ms': values}})\n"
    );
    for mode in EVERY_MODE {
        let ran = Bench::new(mode).await.run("python", &code).await;
        assert_succeeded(mode, &ran);
        let values = &ran.progress.progress.histograms["ms"];
        assert_eq!(values.bounds(), [1.0, 5.0, 25.0], "{mode:?}");
        assert_eq!(values.counts(), [2_000, 4_000, 20_000, 4_000], "{mode:?} {}", ran.story());
        assert_eq!((ran.progress.ignored, ran.err.as_str()), (0, ""), "{mode:?}");
    }
}

#[tokio::test]
async fn a_task_can_not_choose_the_descriptor() {
    let env = BTreeMap::from([("TIDEGATE_PROGRESS_FD".to_owned(), "1".to_owned())]);
    let code = "echo '{\"done\": 1}' >&$TIDEGATE_PROGRESS_FD";
    for mode in EVERY_MODE {
        let bench = Bench::new(mode).await;
        let ran = bench.run_work(&Work { env: env.clone(), ..work("sh", code) }).await;
        assert_eq!(ran.progress.progress.done, Some(1), "{mode:?} {}", ran.story());
        assert_eq!(ran.out, "", "{mode:?}");
    }
}
