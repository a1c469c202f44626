use super::lines::DecisionLines;
use crate::admin_client::{AdminFlag, AdminRequest, runtime};
use crate::commands::drill::flags::DrillFlags;
use crate::commands::drill::progress::Bar;
use crate::failure::Failure;
use crate::output_file;
use crate::shutdown::Signals;
use crate::terminal::shell_path;
use http_body_util::{BodyExt, Limited};
use hyper::Response;
use hyper::body::Incoming;
use serde_json::Value;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// Default admin address of a gateway.
const ADMIN: &str = "127.0.0.1:8001";

/// Bytes that are read of an error response.
const PROBLEM_BYTES_MAX: usize = 64 * 1024;

/// End of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The gateway sent the last line.
    Complete,
    Interrupted,
    ConnectionLost,
}

/// `tidegate drill --record FILE`.
pub fn run(flags: &DrillFlags, path: &Path) -> Result<ExitCode, Failure> {
    if path.exists() && !flags.force {
        let path = path.display();
        return Err(Failure::Usage(format!("{path} already exists: use --force to overwrite it")));
    }
    let address = match &flags.target {
        None => ADMIN,
        Some(url) => url.authority().map_or(ADMIN, |authority| authority.as_str()),
    };
    runtime()?.block_on(record(flags, path, address))
}

async fn record(flags: &DrillFlags, path: &Path, address: &str) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let path_and_query = format!("/v1/decisions?for_s={}", flags.lasts.as_secs_f64());
    let (response, _connection) =
        AdminRequest::get(&path_and_query).open(&AdminFlag::of(address)).await?;
    let mut body = accepted(response, address).await?;
    let broken =
        |error: io::Error| Failure::Runtime(format!("can't write {}: {error}", path.display()));
    let mut lines = DecisionLines::default();
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
                    let whole = lines.take(&data).map_err(|why| no_recording(address, &why))?;
                    // The file is created when the first line has arrived.
                    if file.is_none() && !whole.is_empty() {
                        let created = output_file::create(path, flags.force).map_err(broken)?;
                        file = Some(BufWriter::new(created));
                    }
                    if let Some(file) = &mut file {
                        file.write_all(whole).map_err(broken)?;
                    }
                }
                Some(Err(_)) => break End::ConnectionLost,
                None if lines.end.is_some() => break End::Complete,
                None => break End::ConnectionLost,
            },
            () = signals.next() => break End::Interrupted,
            _ = ticks.tick() => bar.show(start.elapsed(), || lines.progress(start.elapsed())),
        }
    };
    bar.finish();
    let Some(mut file) = file else {
        return Err(no_recording(address, "the connection ended before the first line"));
    };
    if let Some(line) = last_line(end, &lines, start.elapsed()) {
        file.write_all(line.as_bytes()).map_err(broken)?;
    }
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .map_err(broken)?;
    print_summary(path, &lines, start.elapsed());
    match end {
        End::Complete | End::Interrupted => Ok(ExitCode::SUCCESS),
        End::ConnectionLost => Err(Failure::Runtime(format!(
            "the connection to {address} ended before the recording; the decisions until then are in {}",
            path.display()
        ))),
    }
}

/// Body of a response that is a recording.
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
    let field = |name: &str| problem.as_ref()?.get(name)?.as_str();
    match (field("reason"), field("message")) {
        (Some("too_many_recorders"), Some(message)) => Err(Failure::Runtime(message.to_owned())),
        _ => Err(no_recording(address, &format!("status {status}"))),
    }
}

fn no_recording(address: &str, why: &str) -> Failure {
    Failure::Runtime(format!(
        "{address} sends no decision log: {why}; give the --admin-listen address of a \
         gateway as --target"
    ))
}

/// Last line of a recording that the gateway could not end.
fn last_line(end: End, lines: &DecisionLines, lasted: Duration) -> Option<String> {
    let end = match end {
        End::Complete => return None,
        End::Interrupted => "interrupted",
        End::ConnectionLost => "connection_lost",
    };
    let (decisions, lost) = (lines.decisions, lines.lost);
    let lasted_us = lasted.as_micros();
    Some(format!(
        "{{\"end\":\"{end}\",\"decisions\":{decisions},\"lost\":{lost},\"lasted_us\":{lasted_us}}}\n"
    ))
}

fn print_summary(path: &Path, lines: &DecisionLines, lasted: Duration) {
    let lost = match lines.lost {
        0 => String::new(),
        lost => format!("; {lost} more were lost because this client was too slow"),
    };
    // A closed pipe is not a failure.
    let _ = writeln!(
        io::stdout(),
        "{} decisions in {:.1} s recorded in {path}{lost}\ncompare with other limits:\n  tidegate sim --replay {word} --set limits.low=100",
        lines.decisions,
        lasted.as_secs_f64(),
        path = path.display(),
        word = shell_path(path),
    );
}
