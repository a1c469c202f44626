use super::tariff_example;
use super::tariff_text;
use crate::failure::Failure;
use crate::tariff_flags::{ExampleFlags, TariffCommand};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::tariff::{FileMistakes, TariffFile, TariffFileError};

/// `tidegate tariff …`.
pub fn run(command: &TariffCommand) -> Result<ExitCode, Failure> {
    let TariffCommand::Check { path, example, json } = command;
    match TariffFile::read(path) {
        Ok(file) => check(path, &file, example.as_ref(), *json).map(|()| ExitCode::SUCCESS),
        Err(TariffFileError::Wrong(mistakes)) if *json => {
            print(&format!("{:#}\n", mistakes_json(&mistakes)));
            Ok(ExitCode::from(2))
        }
        Err(TariffFileError::Wrong(mistakes)) => Err(Failure::Usage(mistakes.to_string())),
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
    let priced = example.map(|flags| tariff_example::price(file.tariffs(), flags, now_ns));
    let priced = priced.transpose()?;
    let warnings = file.warnings(now_ns);
    if json {
        let mut told = tariff_text::tariffs_json(file.tariffs());
        told["ok"] = json!(true);
        told["warnings"] = warnings
            .iter()
            .map(|one| json!({ "line": one.line, "about": one.about, "text": one.text }))
            .collect();
        if let Some(priced) = &priced {
            told["example"] = priced.json(file.tariffs());
        }
        print(&format!("{told:#}\n"));
        return Ok(());
    }
    let mut text = tariff_text::summary(&path.display().to_string(), file.tariffs());
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

fn mistakes_json(mistakes: &FileMistakes) -> Value {
    let all: Vec<_> = mistakes
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
    json!({ "ok": false, "mistakes": all })
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A reader that has seen enough, such as `head`, is not a failure.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
