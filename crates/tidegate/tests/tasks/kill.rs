//! Killed at any moment: nothing that was acknowledged is missing, and the counts are right.

use crate::place::run;
use crate::samples::*;
use crate::support::folder::TempFolder;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::task::{TaskOutcome, TaskStatus};
use tidegate::tasks::{FjallTaskStore, TaskStore};

const FOLDER: &str = "TIDEGATE_TEST_KILLED_TASKS";
const KILLS: u32 = 8;
const CALLERS: u32 = 16;

/// What is killed: many submit, and say each task that is durable; every third task is brought to its end.
async fn submit_for_ever(folder: &Path, life: u32) {
    let store = Arc::new(FjallTaskStore::open(folder).await.unwrap());
    let callers = (0..CALLERS).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0_u32.. {
                let name = format!("t{life}-{caller}-{number}");
                let mut record = submit(&*store, keyed(&name, &"x".repeat(2_000), &name)).await;
                println!("kept {name}");
                if number % 3 == 0 {
                    finish(&*store, &mut record, TaskOutcome::Succeeded, 5).await;
                    println!("ended {name}");
                }
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        caller.await.unwrap();
    }
}

/// Lets a child submit for a while after its first word; what it said.
fn submit_and_kill(folder: &Path, life: u32, lives_for: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::tasks_survive_a_kill", "--nocapture"])
        .env(FOLDER, folder)
        .env("TIDEGATE_TEST_LIFE", life.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut said, mut started) = (Vec::new(), None);
    for line in lines.by_ref() {
        said.push(line.unwrap());
        let spoke = said.last().is_some_and(|line| line.contains("kept "));
        let started = *started.get_or_insert_with(Instant::now);
        if spoke && started.elapsed() >= lives_for {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died, and we had not read yet. The last line may be cut.
    let mut rest: Vec<_> = lines.map_while(Result::ok).collect();
    rest.pop();
    said.extend(rest);
    said
}

/// The names after a word; the test harness says its own things on the same line.
fn after_word<'a>(said: &'a [String], word: &str) -> Vec<&'a str> {
    said.iter().filter_map(|line| line.split_once(word)).map(|(_, name)| name).collect()
}

#[test]
fn tasks_survive_a_kill() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let life = std::env::var("TIDEGATE_TEST_LIFE").unwrap().parse().unwrap();
        run(submit_for_ever(Path::new(&folder), life));
    }
    let folder = TempFolder::new("killed-tasks");
    let mut said = Vec::new();
    for life in 0..KILLS {
        said.extend(submit_and_kill(
            folder.path(),
            life,
            Duration::from_millis(u64::from(life) * 60),
        ));
        run(async {
            let store = FjallTaskStore::open(folder.path()).await.unwrap();
            let (kept, ended) = (after_word(&said, "kept "), after_word(&said, "ended "));
            assert!(!kept.is_empty(), "the child ended before it acknowledged anything");
            for name in &kept {
                let record = store.get(&id(name)).await.unwrap();
                assert!(record.is_some(), "{name} is missing after life {life}");
            }
            for name in &ended {
                let record = store.get(&id(name)).await.unwrap().unwrap();
                assert_eq!(record.state.status, TaskStatus::Succeeded, "{name}");
                assert_eq!(store.output(&record.id).await.unwrap(), Some(chunks()));
            }
            let counts = store.counts().await.unwrap();
            for (status, count) in TaskStatus::ALL.into_iter().zip(counts) {
                let listed = names(&store, Some(status), 1_000).await.len() as u64;
                assert_eq!(listed, count, "{status}");
            }
            assert_eq!(names(&store, None, 1_000).await.len() as u64, counts.iter().sum::<u64>());
            store.close().await;
        });
    }
}
