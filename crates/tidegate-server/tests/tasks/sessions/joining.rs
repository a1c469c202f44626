//! Joins that a manager accepts, refuses, or closes without a word.

use super::bed::{Bed, BedSettings, until, worker, worker_with};
use super::peer_worker::{Joined, PeerWorker, Told, control_join, dial, progress_of, update};
use crate::folder::TempFolder;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::frame::FrameKind;
use tidegate::task::TaskStatus;
use tidegate_server::tasks::session::{Dispatch, Join, JoinAnswer, Lane, encode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Longest time in which a manager closes a connection that is of no use.
const SOON: Duration = Duration::from_secs(10);

/// Reason and finality of a refusal.
async fn refusal(manager: SocketAddr, join: &Join) -> (String, bool) {
    let Joined { answer, mut reader, .. } = dial(manager, join).await;
    let JoinAnswer::Refused { reason, is_final, message } = answer else { panic!("{answer:?}") };
    assert!(!message.is_empty());
    assert!(timeout(SOON, reader.next()).await.expect("closed").is_err(), "{reason}");
    (reason, is_final)
}

/// Sends bytes, and waits until the manager closes the connection.
async fn closed_after(manager: SocketAddr, bytes: &[u8]) -> Duration {
    let mut tcp = TcpStream::connect(manager).await.unwrap();
    // Fails when the manager has closed it meanwhile.
    let _ = tcp.write_all(bytes).await;
    let began = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(SOON, tcp.read_to_end(&mut rest)).await.expect("closed");
    assert!(rest.is_empty(), "{rest:?}");
    began.elapsed()
}

async fn runs_a_task(bed: &Bed, name: &str) {
    let id = bed.submit(name, "print x").await;
    assert_eq!(bed.until_over(&id).await.status, TaskStatus::Succeeded);
}

#[test]
fn a_token_has_to_be_the_managers_and_a_wrong_one_is_refused_for_good() {
    let folder = TempFolder::new("join-token");
    let bed = Bed::start(&folder, BedSettings { token: Some("secret"), ..BedSettings::default() });
    let wrong = worker_with("w1", 1, bed.address, Some("guess"));
    let missing = worker("w2", 1, bed.address);
    let right = worker_with("w3", 1, bed.address, Some("secret"));
    bed.run(async {
        for (worker, says) in [(&wrong, "not one of"), (&missing, "no token")] {
            until(|| worker.link().is_refused).await;
            let error = worker.link().error.unwrap();
            assert!(error.contains(says) && !error.contains("secret"), "{error}");
        }
        until(|| right.link().manager.is_some()).await;
        bed.until_up("w3").await;
        // A data connection needs the token too.
        let session = bed.worker("w3").unwrap();
        assert!(session.connected);
        let data = Join { lane: Lane::Data, session: Some(1), ..control_join("w3", 1, 1) };
        assert_eq!(refusal(bed.address, &data).await, ("token_missing".to_owned(), true));
        sleep(Duration::from_millis(300)).await;
        assert!(wrong.link().is_refused && wrong.link().manager.is_none(), "it does not come back");
        assert!(bed.worker("w1").is_none(), "and leaves nothing");
    });
}

#[test]
fn names_and_versions_that_a_manager_does_not_accept() {
    let folder = TempFolder::new("join-names");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let long = "x".repeat(65);
        for name in ["", "a b", "naïve", "a/b", &long, "local"] {
            let refused = refusal(bed.address, &control_join(name, 1, 1)).await;
            assert_eq!(refused, ("name_invalid".to_owned(), true), "{name:?}");
        }
        let other = Join { version: 2, ..control_join("w1", 1, 1) };
        assert_eq!(refusal(bed.address, &other).await, ("unknown_version".to_owned(), true));
        let over = Join { lane: Lane::Data, session: Some(77), ..control_join("w1", 1, 1) };
        assert_eq!(refusal(bed.address, &over).await, ("session_over".to_owned(), false));
        assert!(bed.hub().list().workers.iter().all(|worker| !worker.connected));
    });
}

#[test]
fn a_name_in_use_is_refused_until_its_process_is_gone() {
    let folder = TempFolder::new("join-in-use");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let first = PeerWorker::join(bed.address, "w1", 1, 1).await;
        for _ in 0..2 {
            let refused = refusal(bed.address, &control_join("w1", 2, 1)).await;
            assert_eq!(refused, ("name_in_use".to_owned(), false));
        }
        let second = worker("w1", 1, bed.address);
        until(|| second.link().error.is_some()).await;
        assert!(!second.link().is_refused, "it tries again");
        drop(first);
        until(|| second.link().manager.is_some()).await;
        runs_a_task(&bed, "a").await;
        assert_eq!(second.executor().counts().started, 1);
    });
}

#[test]
fn a_process_that_joins_again_replaces_its_session_and_both_old_connections_are_closed() {
    let folder = TempFolder::new("join-again");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let mut old = PeerWorker::join(bed.address, "w1", 7, 1).await;
        old.tell(progress_of(0, 1), true).await;
        let mut new = PeerWorker::join(bed.address, "w1", 7, 1).await;
        assert!(new.session > old.session);
        assert!(timeout(SOON, old.data_in.next()).await.expect("closed").is_err());
        while timeout(SOON, old.told()).await.expect("closed").is_ok() {}
        let id = bed.submit("a", "print x").await;
        assert_eq!(new.accept().await, "a");
        assert!(bed.worker("w1").unwrap().connected);
        new.send(vec![update("a", "succeeded", "x\n", None)], false).await;
        assert_eq!(bed.until_over(&id).await.status, TaskStatus::Succeeded);
    });
}

/// Otherwise each one would hold a descriptor, and a place among the connections, for ever.
#[test]
fn a_session_has_one_data_connection_which_ends_with_it() {
    let folder = TempFolder::new("join-data");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "w1", 7, 1).await;
        peer.tell(progress_of(0, 1), true).await;
        let session = Some(peer.session);
        let second = Join { lane: Lane::Data, session, ..control_join("w1", 7, 1) };
        assert_eq!(refusal(bed.address, &second).await, ("session_over".to_owned(), false));
        let PeerWorker { control_in, control_out, mut data_in, data_out, .. } = peer;
        drop((control_in, control_out));
        assert!(timeout(SOON, data_in.next()).await.expect("closed").is_err());
        drop(data_out);
    });
}

#[test]
fn a_worker_that_vanishes_at_its_join_is_not_shown_as_connected() {
    let folder = TempFolder::new("join-vanish");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        for _ in 0..20 {
            let mut tcp = TcpStream::connect(bed.address).await.unwrap();
            let mut bytes = Lane::Control.preamble().to_vec();
            let join = control_join("w1", 7, 1);
            encode(&mut bytes, FrameKind::Join, &join).unwrap();
            tcp.write_all(&bytes).await.unwrap();
            // Closed with a reset: the answer can't be written.
            socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
            drop(tcp);
        }
        let is_gone = || bed.worker("w1").is_none_or(|worker| !worker.connected);
        timeout(SOON, until(is_gone)).await.expect("gone");
    });
}

#[test]
fn bytes_that_are_no_session_are_closed_and_break_nothing() {
    let folder = TempFolder::new("join-garbage");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 1, bed.address);
    bed.run(async {
        bed.until_up("w1").await;
        closed_after(bed.address, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        closed_after(bed.address, &[0; 4_096]).await;
        for lane in [Lane::Control, Lane::Data] {
            let with = |bytes: &[u8]| [&lane.preamble()[..], bytes].concat();
            closed_after(bed.address, &with(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")).await;
            // A length beyond the bound is refused before its bytes come.
            closed_after(bed.address, &with(&u32::MAX.to_be_bytes())).await;
            closed_after(bed.address, &with(&[0xff; 64])).await;
            // A frame, and no join.
            let mut frame = Vec::new();
            let body = Dispatch::default();
            encode(&mut frame, FrameKind::Execute, &body).unwrap();
            closed_after(bed.address, &with(&frame)).await;
        }
        runs_a_task(&bed, "a").await;
    });
}

#[test]
fn garbage_after_a_join_ends_the_session_alone() {
    let folder = TempFolder::new("join-late-garbage");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 1, bed.address);
    bed.run(async {
        for (nth, lane) in [Lane::Control, Lane::Data].into_iter().enumerate() {
            let mut peer = PeerWorker::join(bed.address, &format!("p{nth}"), 7, 0).await;
            match lane {
                Lane::Control => peer.control_out.write(&[0xff; 64]).await.unwrap(),
                Lane::Data => peer.data_out.write(&[0xff; 64]).await.unwrap(),
            }
            let closed = async {
                match lane {
                    Lane::Control => {
                        while peer.told().await.is_ok_and(|told| matches!(told, Told::Lease(_))) {}
                    }
                    Lane::Data => while peer.data_in.next().await.is_ok() {},
                }
            };
            timeout(SOON, closed).await.expect("closed");
        }
        runs_a_task(&bed, "a").await;
    });
}

#[test]
fn a_connection_that_says_nothing_is_closed_after_its_time() {
    let folder = TempFolder::new("join-silent");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let (control, data) = (Lane::Control.preamble(), Lane::Data.preamble());
        let (nothing, after_control, after_data) = tokio::join!(
            closed_after(bed.address, b""),
            closed_after(bed.address, &control),
            closed_after(bed.address, &data),
        );
        for waited in [nothing, after_control, after_data] {
            assert!(waited > Duration::from_secs(3), "a slow one has its time: {waited:?}");
        }
    });
}

/// The length of a frame is believed before its bytes come: it must not be a stranger's that is kept for long.
#[test]
fn a_join_longer_than_any_is_refused_by_its_length() {
    let folder = TempFolder::new("join-long");
    let bed = Bed::start(&folder, BedSettings { token: Some("secret"), ..BedSettings::default() });
    bed.run(async {
        for lane in [Lane::Control, Lane::Data] {
            let software = "x".repeat(64 << 10);
            let long = Join { software, lane, ..control_join("w1", 1, 1) };
            let mut frame = Vec::new();
            encode(&mut frame, FrameKind::Join, &long).unwrap();
            // Its header alone, so that the manager could wait for the rest as for a silent one.
            let preamble = lane.preamble();
            let header = [&preamble[..], &frame[..7]].concat();
            tokio::select! {
                biased;
                _ = closed_after(bed.address, &preamble) => panic!("a silent one is first"),
                _ = closed_after(bed.address, &header) => {}
            }
        }
    });
}

/// A deadline for each part would give a stranger three times as long.
#[test]
fn a_join_has_one_deadline_however_it_drips() {
    let folder = TempFolder::new("join-drips");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let mut drips = TcpStream::connect(bed.address).await.unwrap();
        let preamble = Lane::Control.preamble();
        drips.write_all(&preamble[..3]).await.unwrap();
        sleep(Duration::from_secs(2)).await;
        let silent = closed_after(bed.address, &preamble);
        let dripping = async {
            sleep(Duration::from_secs(1)).await;
            drips.write_all(&preamble[3..]).await.unwrap();
            drips.read_to_end(&mut Vec::new()).await
        };
        tokio::select! {
            biased;
            _ = silent => panic!("the one that came later has the later deadline"),
            _ = dripping => {}
        }
    });
}

/// A token is worth nothing if whoever has none can keep its owner out.
#[test]
fn strangers_that_say_nothing_do_not_keep_a_worker_out() {
    let folder = TempFolder::new("join-crowd");
    let bed = Bed::start(&folder, BedSettings { token: Some("secret"), ..BedSettings::default() });
    bed.run(async {
        // Twice as many as may wait to join.
        let mut strangers = tokio::task::JoinSet::new();
        for nth in 0..512 {
            let lane = [Lane::Control, Lane::Data][nth % 2];
            let mut tcp = TcpStream::connect(bed.address).await.unwrap();
            tcp.write_all(&lane.preamble()).await.unwrap();
            strangers.spawn(async move { tcp.read_to_end(&mut Vec::new()).await });
        }
        let last = strangers.len();
        let worker = worker_with("w1", 1, bed.address, Some("secret"));
        until(|| worker.link().manager.is_some()).await;
        let mut closed = 0;
        while strangers.try_join_next().is_some() {
            closed += 1;
        }
        // Those that waited behind it are still there, and those before it are not.
        assert!((256..last).contains(&closed), "{closed} of {last}");
        runs_a_task(&bed, "a").await;
    });
}

/// A lease would be long enough to lose all tasks that run there.
#[test]
fn a_worker_that_does_not_read_its_control_lane_is_given_up_before_the_lease() {
    let folder = TempFolder::new("join-deaf");
    let lease = Duration::from_secs(600);
    let bed = Bed::start(&folder, BedSettings { lease, ..BedSettings::default() });
    bed.run(async {
        let mut deaf = PeerWorker::join(bed.address, "w1", 7, 64).await;
        bed.until_up("w1").await;
        // More than the sockets of both sides buffer.
        let code = format!("# {}", "x".repeat(1_000_000));
        for nth in 0..24 {
            bed.submit(&format!("t{nth}"), &code).await;
        }
        let is_gone = || bed.worker("w1").is_none_or(|worker| !worker.connected);
        timeout(Duration::from_secs(30), until(is_gone)).await.expect("gone");
        while timeout(SOON, deaf.told()).await.expect("closed").is_ok() {}
    });
}
