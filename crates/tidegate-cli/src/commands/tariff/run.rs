use super::flags::{ExampleFlags, TariffCommand};
use super::{example as priced_example, summary};
use crate::exit_code;
use crate::failure::Failure;
use crate::terminal::print;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::tariff::{TariffDiagnostics, TariffFile, TariffFileError};

/// `tidegate tariff …`.
pub fn run(command: &TariffCommand) -> Result<ExitCode, Failure> {
    let TariffCommand::Check { path, example, json } = command;
    match TariffFile::read(path) {
        Ok(file) => check(path, &file, example.as_ref(), *json).map(|()| ExitCode::SUCCESS),
        Err(TariffFileError::Wrong(errors)) if *json => {
            print(&format!("{:#}\n", errors_json(&errors)));
            Ok(ExitCode::from(exit_code::USAGE))
        }
        Err(TariffFileError::Wrong(errors)) => Err(Failure::Usage(errors.to_string())),
        Err(error) => Err(Failure::Runtime(error.to_string())),
    }
}

fn check(
    path: &Path,
    file: &TariffFile,
    example: Option<&ExampleFlags>,
    json: bool,
) -> Result<(), Failure> {
    let now_ns = now_ns();
    let priced = example.map(|flags| priced_example::price(file.tariffs(), flags, now_ns));
    let priced = priced.transpose()?;
    let warnings = file.warnings(now_ns);
    if json {
        let mut report = summary::tariffs_json(file.tariffs());
        report["ok"] = json!(true);
        report["warnings"] = warnings
            .iter()
            .map(|one| json!({ "line": one.line, "about": one.about, "text": one.text }))
            .collect();
        if let Some(priced) = &priced {
            report["example"] = priced.json(file.tariffs());
        }
        print(&format!("{report:#}\n"));
        return Ok(());
    }
    let mut text = summary::summary(&path.display().to_string(), file.tariffs());
    for warning in warnings {
        text.push_str(&format!("warning: {}:{warning}\n", path.display()));
    }
    if let Some(priced) = priced {
        text.push('\n');
        text.push_str(&priced.text(file.tariffs()));
    }
    print(&text);
    Ok(())
}

fn errors_json(errors: &TariffDiagnostics) -> Value {
    let all: Vec<_> = errors
        .iter()
        .map(|one| {
            json!({
                "line": one.line,
                "about": one.about,
                "wrong": one.wrong,
                "expected": one.expected,
                "fix": one.fix,
            })
        })
        .collect();
    json!({ "ok": false, "errors": all })
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
