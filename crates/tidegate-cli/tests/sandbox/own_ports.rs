//! Tasks with network, and the ports of the process that runs them.

use crate::bench::{Bench, Mode, config, odd_runtimes, work};
use crate::elsewhere::Elsewhere;
use std::net::TcpListener;
use tidegate_server::tasks::sandbox::ProcessRunner;

const MODES: [Mode; 2] = [Mode::All, Mode::NoBubblewrap];

/// Connects to a port in every way that the kernel offers, and prints how each ended.
const WAYS: &str = "
import errno, socket, sys
MPTCP, SMC, FASTOPEN = 262, 43, 0x20000000
port = int(sys.argv[1])
def connected(family, kind, protocol, host):
    with socket.socket(family, kind, protocol) as s:
        s.connect((host, port))
def fast_open():
    with socket.socket() as s:
        s.sendto(b'x', FASTOPEN, ('127.0.0.1', port))
def fast_open_message():
    with socket.socket() as s:
        s.sendmsg([b'x'], [], FASTOPEN, ('127.0.0.1', port))
def by_errno():
    with socket.socket() as s:
        s.setblocking(False)
        code = s.connect_ex(('127.0.0.1', port))
        if code not in (0, errno.EINPROGRESS): raise OSError(code, 'connect_ex')
stream = socket.SOCK_STREAM
for name, way in [
    ('plain', lambda: connected(socket.AF_INET, stream, 0, '127.0.0.1')),
    ('another address', lambda: connected(socket.AF_INET, stream, 0, '127.7.7.7')),
    ('mapped', lambda: connected(socket.AF_INET6, stream, 0, '::ffff:127.0.0.1')),
    ('mptcp', lambda: connected(socket.AF_INET, stream, MPTCP, '127.0.0.1')),
    ('smc', lambda: connected(SMC, stream, 0, '127.0.0.1')),
    ('fast open', fast_open),
    ('fast open message', fast_open_message),
    ('not blocking', by_errno),
]:
    try:
        way()
        print(name, 'CONNECTED')
    except OSError as e:
        print(name, errno.errorcode.get(e.errno, e))
";

#[tokio::test]
async fn a_task_with_network_reaches_no_port_of_its_node() {
    // This process runs the node's part, so its ports are the node's.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let own = listener.local_addr().unwrap().port();
    let mut guarded = 0;
    for mode in MODES {
        let bench = Bench::with_odd_runtimes(mode).await;
        let layers = bench.runner.layers();
        if !layers.iter().any(|layer| layer.layer == "node_ports" && layer.active) {
            continue;
        }
        guarded += 1;
        let mut elsewhere = Elsewhere::start();
        let mut tried = work("online", WAYS);
        tried.args = vec![own.to_string()];
        let ran = bench.run_work(&tried).await;
        assert_eq!(ran.out.lines().count(), 8, "{mode:?} {}", ran.story());
        assert!(!ran.out.contains("CONNECTED"), "{mode:?} {}", ran.story());
        assert!(ran.out.contains("plain EACCES\n"), "{mode:?} {}", ran.story());
        assert!(listener.accept().is_err(), "{mode:?}: somebody came");
        tried.args = vec![elsewhere.port.to_string()];
        let ran = bench.run_work(&tried).await;
        assert!(ran.out.contains("plain CONNECTED\n"), "{mode:?} {}", ran.story());
        assert_eq!(elsewhere.line(), "came");
    }
    assert!(guarded > 0, "this test needs Landlock with ABI 4, in kernels from 6.7 on");
}

#[tokio::test]
async fn a_runtime_with_network_needs_the_layer_or_consent() {
    let mut config = config(Mode::WatcherOnly);
    config.runtimes.extend(odd_runtimes());
    let error = ProcessRunner::new(config).await.expect_err("it should not start").to_string();
    for part in ["online", "own ports", "turned off", "tasks.unguarded_network"] {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}
