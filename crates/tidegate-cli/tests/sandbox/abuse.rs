//! Tasks that exceed their limits.

use crate::bench::{
    Bench, Mode, OUTPUT_BYTES_MAX, Ran, config, runs, small, unique, wait_until, within, work,
};
use std::time::{Duration, Instant};
use tidegate::task::{EndReason, OutputStream, TaskOutcome};
use tidegate_server::tasks::execution::{OutputSink, ProgressSink, StopSignal};
use tidegate_server::tasks::sandbox::{ProcessConfig, RuntimeConfig};

const MODES: [Mode; 2] = [Mode::All, Mode::NoBubblewrap];
const EVERY_MODE: [Mode; 3] = [Mode::All, Mode::NoBubblewrap, Mode::WatcherOnly];

/// Runs it with each set of layers, expects this end, and that the runner is as good as before.
async fn assert_stopped(modes: &[Mode], runtime: &str, code: &str, reason: EndReason) -> Vec<Ran> {
    let mut all = Vec::new();
    for mode in modes {
        let bench = match runtime {
            "brief" => Bench::with_odd_runtimes(*mode).await,
            _ => Bench::new(*mode).await,
        };
        let ran = bench.run(runtime, code).await;
        assert_eq!(ran.ending.reason, reason, "{mode:?} {}", ran.story());
        assert_eq!(ran.ending.outcome, TaskOutcome::Failed);
        bench.assert_healthy().await;
        all.push(ran);
    }
    all
}

#[tokio::test]
async fn a_fork_bomb() {
    // A mark in the arguments shows that none is left.
    let mark = format!("bomb-{}", unique());
    // Bounded by itself too: 400 processes at most if nobody stops it.
    let code = format!(
        "import os, sys, time\n\
         if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, '{mark}'])\n\
         for _ in range(400):\n    if os.fork() == 0: time.sleep(30); os._exit(0)\n\
         time.sleep(30)"
    );
    assert_stopped(&EVERY_MODE, "python", &code, EndReason::ProcessLimit).await;
    assert!(!runs(&mark));
}

#[tokio::test]
async fn a_fork_bomb_that_doubles() {
    // Each of the family has two children, eight generations deep, and stays.
    let code =
        "bomb() { [ $1 -gt 0 ] && { bomb $(($1-1)) & bomb $(($1-1)) & }; sleep 30; }; bomb 8; wait";
    assert_stopped(&EVERY_MODE, "sh", code, EndReason::ProcessLimit).await;
}

#[tokio::test]
async fn threads_without_end() {
    let code = "import threading, time\n\
                for _ in range(400): threading.Thread(target=time.sleep, args=(30,)).start()";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::ProcessLimit).await;
}

#[tokio::test]
async fn an_allocation_of_10_gb() {
    assert_stopped(&MODES, "python", "x = bytearray(10 << 30)", EndReason::MemoryLimit).await;
}

#[tokio::test]
async fn an_allocation_that_grows() {
    // 1 GiB at most if nobody stops it.
    let code =
        "x = []\nfor _ in range(64): x.append(bytearray(16 << 20))\nimport time; time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::MemoryLimit).await;
}

#[tokio::test]
async fn memory_that_many_processes_take_together() {
    // Each is far below the limit, so only whoever adds them up can know.
    let code = "import os, time\n\
                for _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(60 << 20); time.sleep(30)\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::MemoryLimit).await;
}

#[tokio::test]
async fn memory_that_belongs_to_no_process_alone() {
    // Not counted by the kernel's limit: it is shared, and no file stands behind it.
    let code = "import mmap, time\n\
                m = mmap.mmap(-1, 1 << 30)\n\
                for at in range(0, 1 << 30, 4096): m[at] = 1\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::MemoryLimit).await;
}

#[tokio::test]
async fn processes_that_share_what_they_have_are_not_counted_twice() {
    let code = "import os, time\n\
                x = bytearray(100 << 20)\n\
                for _ in range(6):\n    if os.fork() == 0: time.sleep(0.5); os._exit(0)\n\
                for _ in range(6): os.wait()\n\
                print('done')";
    for mode in MODES {
        let ran = Bench::new(mode).await.run("python", code).await;
        assert_eq!(ran.out, "done\n", "{mode:?} {}", ran.story());
    }
}

#[tokio::test]
async fn an_endless_print() {
    let code = "while True: print('all work and no play')";
    for ran in assert_stopped(&EVERY_MODE, "python", code, EndReason::OutputLimit).await {
        assert!(ran.ending.output_cut);
        assert!(ran.out.len() <= OUTPUT_BYTES_MAX && ran.out.len() > OUTPUT_BYTES_MAX / 2);
    }
    assert_stopped(&MODES, "sh", "while :; do echo no >&2; done", EndReason::OutputLimit).await;
}

#[tokio::test]
async fn cpu_without_end() {
    assert_stopped(&MODES, "brief", "while True: pass", EndReason::CpuLimit).await;
}

#[tokio::test]
async fn cpu_that_many_processes_take_one_after_the_other() {
    // None of them takes a second, and all are gone before the next begins.
    let code = "import os, time\n\
                def work():\n    while time.process_time() < 0.4: pass\n    os._exit(0)\n\
                for _ in range(20):\n    if os.fork() == 0: work()\n    os.wait()";
    assert_stopped(&EVERY_MODE, "brief", code, EndReason::CpuLimit).await;
}

#[tokio::test]
async fn a_file_without_end() {
    let code =
        "with open('big', 'wb') as f:\n    for _ in range(64): f.write(bytes(1 << 20)); f.flush()";
    assert_stopped(&MODES, "python", code, EndReason::FileLimit).await;
}

#[tokio::test]
async fn a_file_without_end_by_a_program_that_does_not_look() {
    let code = "exec head -c 64m /dev/zero > big";
    assert_stopped(&MODES, "sh", &code.replace("64m", "67108864"), EndReason::FileLimit).await;
}

#[tokio::test]
async fn files_that_are_small_and_many() {
    let code = "import time\n\
                for n in range(5000):\n    with open(f'f{n}', 'w') as f: f.write('x')\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::FileLimit).await;
    let code = "import tempfile, time\n\
                for _ in range(4):\n    tempfile.NamedTemporaryFile(delete=False).write(bytes(4 << 20))\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::FileLimit).await;
}

#[tokio::test]
async fn files_that_are_deleted_and_still_open() {
    // Each is shorter than the kernel's limit for one file, and none has a name.
    let code = "import tempfile, time\n\
                files = [tempfile.TemporaryFile() for _ in range(4)]\n\
                for f in files: f.write(bytes(4 << 20)); f.flush()\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::FileLimit).await;
    let code = "import os, time\n\
                for n in range(4):\n\
                \x20   if os.fork() == 0:\n\
                \x20       f = open(f'f{n}', 'wb'); os.unlink(f.name)\n\
                \x20       f.write(bytes(4 << 20)); f.flush(); time.sleep(30)\n\
                time.sleep(30)";
    assert_stopped(&EVERY_MODE, "python", code, EndReason::FileLimit).await;
}

#[tokio::test]
async fn a_deleted_file_that_many_processes_share_counts_once() {
    let code = "import os, tempfile, time\n\
                f = tempfile.TemporaryFile(); f.write(bytes(5 << 20)); f.flush()\n\
                for _ in range(6):\n    if os.fork() == 0: time.sleep(1); os._exit(0)\n\
                for _ in range(6): os.wait()\n\
                print('done')";
    for mode in EVERY_MODE {
        let ran = Bench::new(mode).await.run("python", code).await;
        assert_eq!(ran.out, "done\n", "{mode:?} {}", ran.story());
    }
}

#[tokio::test]
async fn the_end_does_not_wait_for_the_removal_of_many_folders() {
    let code = "import os\n\
                for n in range(200):\n\
                \x20   os.mkdir(f'{n}')\n\
                \x20   for m in range(200): os.mkdir(f'{n}/{m}')\n\
                print('made', flush=True)";
    let python = RuntimeConfig {
        files_max: 1_000_000,
        file_bytes_max: 1 << 30,
        ..small(RuntimeConfig::python())
    };
    let bench = Bench::with(ProcessConfig { runtimes: vec![python], ..config(Mode::All) }).await;
    let (sink, progress) = (OutputSink::new(OUTPUT_BYTES_MAX), ProgressSink::new());
    let (_switch, stop) = StopSignal::new();
    let work = work("python", code);
    let made = async {
        while sink.text(OutputStream::Stdout).is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Instant::now()
    };
    let (ending, made) =
        tokio::join!(within(bench.runner.run(&work, &sink, &progress, stop)), made);
    let ended = Instant::now();
    assert_eq!(ending.outcome, TaskOutcome::Succeeded, "{ending:?}");
    assert_eq!(bench.work_folders(), [""; 0], "its folder is out of the way");
    let next = bench.run("python", "print(1)").await;
    assert_eq!(next.out, "1\n", "{}", next.story());
    wait_until("everything is swept", || bench.unswept() == 0);
    let (waited, swept) = (ended - made, ended.elapsed());
    assert!(waited < swept, "the end came after {waited:?}, the removal took {swept:?}");
}
