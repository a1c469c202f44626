use super::diagnostics::quoted;
use rust_decimal::Decimal;
use tidegate_core::suggestion::nearest;
use tidegate_core::tariff::{Days, LocalTime};
use toml::de::DeValue;
use toml::value::{Datetime, Time};

/// Error of a value: its description, the expected value, the correction.
pub(super) struct ValueError {
    pub(super) wrong: String,
    pub(super) expected: String,
    pub(super) fix: String,
}

// === impl ValueError ===

impl ValueError {
    pub(super) fn new(
        wrong: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { wrong: wrong.into(), expected: expected.into(), fix: fix.into() }
    }
}

/// Non-empty string.
pub(super) fn text(value: &DeValue<'_>) -> Result<String, ValueError> {
    match value {
        DeValue::String(text) if !text.trim().is_empty() => Ok(text.to_string()),
        other => Err(ValueError::new(given(other), "text", "write it in quotes")),
    }
}

/// Exact number: an integer, or text such as `"0.06"`.
pub(super) fn decimal(value: &DeValue<'_>) -> Result<Decimal, ValueError> {
    let expected = "a number in quotes, such as \"0.06\", or a whole number";
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map(Decimal::from)
            .map_err(|_| ValueError::new(given(value), expected, "write a smaller number")),
        DeValue::String(text) => Decimal::from_str_exact(text).map_err(|_| {
            ValueError::new(
                given(value),
                expected,
                "write digits, with at most 28 behind the point",
            )
        }),
        DeValue::Float(number) => {
            let wrong = format!("{} is a binary float, which is not exact", number.as_str());
            Err(ValueError::new(
                wrong,
                expected,
                format!("put it in quotes: \"{}\"", number.as_str()),
            ))
        }
        other => Err(ValueError::new(given(other), expected, "write the number in quotes")),
    }
}

pub(super) fn count(value: &DeValue<'_>) -> Result<u64, ValueError> {
    let error =
        || ValueError::new(given(value), "a whole number, 1 or more", "write it without quotes");
    match value {
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).map_err(|_| error())
        }
        _ => Err(error()),
    }
}

/// One string, or several.
pub(super) fn texts(value: &DeValue<'_>) -> Result<Vec<String>, ValueError> {
    match value {
        DeValue::Array(values) => values.iter().map(|value| text(value.get_ref())).collect(),
        one => text(one).map(|text| vec![text]),
    }
}

pub(super) fn days(value: &DeValue<'_>) -> Result<Days, ValueError> {
    let mut days = Days::NONE;
    for name in texts(value)? {
        let some = match name.as_str() {
            "all" => Days::ALL,
            "weekdays" => Days::WEEKDAYS,
            "weekend" => Days::WEEKEND,
            name => day(name)?,
        };
        days = some.iter().fold(days, Days::with);
    }
    Ok(days)
}

fn day(name: &str) -> Result<Days, ValueError> {
    if let Some(day) = (0..).zip(Days::NAMES).find(|(_, known)| *known == name) {
        return Ok(Days::NONE.with(day.0));
    }
    let known = Days::NAMES.into_iter().chain(["all", "weekdays", "weekend"]);
    // The first three letters identify a day's full name.
    let short: String = name.to_lowercase().chars().take(3).collect();
    let near = Days::NAMES.into_iter().find(|day| *day == short).or_else(|| nearest(name, known));
    let fix = near.map_or("use these words".to_owned(), |near| format!("did you mean \"{near}\"?"));
    let expected = "mon, tue, wed, thu, fri, sat, sun, weekdays, weekend or all";
    Err(ValueError::new(format!("{} is no day", quoted(name)), expected, fix))
}

/// Minute of the day, from text such as `"07:30"` or a TOML time.
pub(super) fn clock(value: &DeValue<'_>) -> Result<u16, ValueError> {
    let minute = match value {
        DeValue::String(text) => clock_text(text),
        DeValue::Datetime(Datetime {
            date: None,
            time: Some(Time { hour, minute, second: None | Some(0), nanosecond: None | Some(0) }),
            offset: None,
        }) => Some(u16::from(*hour) * 60 + u16::from(*minute)),
        _ => None,
    };
    let fix = "write hours and minutes; \"24:00\" is the end of the day";
    minute.ok_or_else(|| ValueError::new(given(value), "a time such as \"07:30\"", fix))
}

fn clock_text(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two = |part: &str| match part.as_bytes() {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(u16::from((tens - b'0') * 10 + ones - b'0'))
        }
        _ => None,
    };
    let (hour, minute) = (two(hour)?, two(minute)?);
    (minute < 60 && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
}

/// TOML date, with or without a time, local to the tariff's zone.
pub(super) fn local_time(value: &DeValue<'_>) -> Result<LocalTime, ValueError> {
    let expected = "a date such as 2026-01-31, or 2026-01-31T12:00:00";
    let DeValue::Datetime(Datetime { date: Some(date), time, offset }) = value else {
        return Err(ValueError::new(given(value), expected, "write the date without quotes"));
    };
    if offset.is_some() {
        let fix = "leave the offset out: dates are by the clocks of time_zone";
        return Err(ValueError::new(given(value), expected, fix));
    }
    let (hour, minute, second) =
        time.map_or((0, 0, 0), |time| (time.hour, time.minute, time.second.unwrap_or(0)));
    let small = |number: u8| i8::try_from(number).ok();
    let at = || {
        LocalTime::new(
            i16::try_from(date.year).ok()?,
            small(date.month)?,
            small(date.day)?,
            small(hour)?,
            small(minute)?,
            small(second)?,
        )
    };
    at().ok_or_else(|| ValueError::new(given(value), expected, "write a day that the calendar has"))
}

/// Description of a given value.
pub(super) fn given(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.trim().is_empty() => "an empty text is given".to_owned(),
        DeValue::String(text) => format!("the text {} is given", quoted(text)),
        DeValue::Integer(number) => format!("the number {number} is given"),
        DeValue::Float(number) => format!("the number {} is given", number.as_str()),
        DeValue::Boolean(on) => format!("{on} is given"),
        DeValue::Datetime(at) => format!("the time {at} is given"),
        DeValue::Array(_) => "a list is given".to_owned(),
        DeValue::Table(_) => "a table is given".to_owned(),
    }
}
