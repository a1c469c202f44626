use super::bar::Bar;
use super::lines::Lines;
use crate::admin::{Ask, runtime};
use crate::commands::signals::Signals;
use crate::drill_flags::DrillFlags;
use crate::failure::Failure;
use http_body_util::{BodyExt, Limited};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// Where a gateway answers operators, if nobody says otherwise.
const ADMIN: &str = "127.0.0.1:8001";

/// More than any answer that is no recording.
const PROBLEM_BYTES_MAX: usize = 64 * 1024;

/// How a recording ended on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The gateway said how.
    Told,
    Interrupted,
    ConnectionLost,
}

/// `tidegate drill --record FILE`.
pub fn run(flags: &DrillFlags, path: &Path) -> Result<ExitCode, Failure> {
    if path.exists() && !flags.force {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "{path} is there already: use --force to overwrite it"
        )));
    }
    let address = match &flags.target {
        None => ADMIN,
        Some(url) => url.authority().map_or(ADMIN, |authority| authority.as_str()),
    };
    runtime()?.block_on(record(flags, path, address))
}

async fn record(flags: &DrillFlags, path: &Path, address: &str) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let asked = format!("/v1/decisions?for_s={}", flags.lasts.as_secs_f64());
    let (response, _connection) = Ask::get(&asked).open(address).await?;
    let mut body = accepted(response, address).await?;
    let broken =
        |error: io::Error| Failure::Runtime(format!("can't write {}: {error}", path.display()));
    let mut lines = Lines::default();
    let mut file = None;
    let bar = Bar::new(!flags.no_progress, flags.lasts);
    let start = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        tokio::select! {
            frame = body.frame() => match frame {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    let whole = lines.take(&data).map_err(|why| no_admin(address, &why))?;
                    // Nothing is made or overwritten before it is sure that there is something to record.
                    if file.is_none() && !whole.is_empty() {
                        file = Some(BufWriter::new(open(path, flags.force).map_err(broken)?));
                    }
                    if let Some(file) = &mut file {
                        file.write_all(whole).map_err(broken)?;
                    }
                }
                Some(Err(_)) => break End::ConnectionLost,
                None if lines.end.is_some() => break End::Told,
                None => break End::ConnectionLost,
            },
            () = signals.next() => break End::Interrupted,
            _ = ticks.tick() => bar.show(start.elapsed(), || lines.progress(start.elapsed())),
        }
    };
    bar.finish();
    let Some(mut file) = file else {
        return Err(no_admin(address, "nothing came before the connection ended"));
    };
    if let Some(line) = own_end(end, &lines, start.elapsed()) {
        file.write_all(line.as_bytes()).map_err(broken)?;
    }
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .map_err(broken)?;
    say(path, &lines, start.elapsed());
    match end {
        End::Told | End::Interrupted => Ok(ExitCode::SUCCESS),
        End::ConnectionLost => Err(Failure::Runtime(format!(
            "the connection to {address} ended before the recording did; what came is in {}",
            path.display()
        ))),
    }
}

/// The body of an answer that is a recording.
async fn accepted(response: Response<Incoming>, address: &str) -> Result<Incoming, Failure> {
    let kind = response.headers().get(hyper::header::CONTENT_TYPE).cloned();
    let is_recording = kind.is_some_and(|kind| kind.as_bytes() == b"application/x-ndjson");
    if response.status() == 200 && is_recording {
        return Ok(response.into_body());
    }
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), PROBLEM_BYTES_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let problem: Option<Value> = serde_json::from_slice(&body).ok();
    let told = |name: &str| problem.as_ref()?.get(name)?.as_str();
    match (told("reason"), told("message")) {
        (Some("too_many_recorders"), Some(message)) => Err(Failure::Runtime(message.to_owned())),
        _ => Err(no_admin(address, &format!("it answered with status {status}"))),
    }
}

fn no_admin(address: &str, why: &str) -> Failure {
    Failure::Runtime(format!(
        "{address} does not tell what it decides: {why}; give the --admin-listen address of a \
         gateway as --target"
    ))
}

fn open(path: &Path, force: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    // Whoever made it meanwhile keeps it.
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)
}

/// The last line, where the gateway could not write it.
fn own_end(end: End, lines: &Lines, lasted: Duration) -> Option<String> {
    let end = match end {
        End::Told => return None,
        End::Interrupted => "interrupted",
        End::ConnectionLost => "connection_lost",
    };
    let (decisions, lost) = (lines.decisions, lines.lost);
    let lasted_us = lasted.as_micros();
    Some(format!(
        "{{\"end\":\"{end}\",\"decisions\":{decisions},\"lost\":{lost},\"lasted_us\":{lasted_us}}}\n"
    ))
}

fn say(path: &Path, lines: &Lines, lasted: Duration) {
    let lost = match lines.lost {
        0 => String::new(),
        lost => format!(", and {lost} more that this end was too slow for"),
    };
    // A reader that has seen enough is not a failure.
    let _ = writeln!(
        io::stdout(),
        "{} decisions in {:.1} s are in {path}{lost}\nsee what other limits would have done:\n  tidegate sim --replay {path} --set limits.low=100",
        lines.decisions,
        lasted.as_secs_f64(),
        path = path.display(),
    );
}
