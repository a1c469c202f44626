use super::error::TaskApiError;
use crate::http::request::percent_decoded;
use tidegate::suggestion::nearest;
use tidegate::task::{OutputStream, TaskStatus};
use tidegate::tasks::TaskQuery;

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 500;
/// Longest cursor; longer than that of any store.
const AFTER_BYTES_MAX: usize = 512;

/// Parses the query of a list of tasks.
///
/// # Errors
///
/// When a parameter is unknown or has an invalid value.
pub fn task_query(query: Option<&str>) -> Result<TaskQuery, TaskApiError> {
    let mut parsed = TaskQuery { limit: LIMIT_DEFAULT, ..TaskQuery::default() };
    for (name, value) in parameters(query, &["status", "limit", "after"])? {
        match name {
            "status" => {
                let status = TaskStatus::from_name(&value);
                let names = TaskStatus::ALL.map(TaskStatus::name).join(", ");
                let wrong = || wrong(name, &value, format!("one of {names}"));
                parsed.status = Some(status.ok_or_else(wrong)?);
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                let wrong = || wrong(name, &value, format!("a whole number, 1 … {LIMIT_MAX}"));
                parsed.limit = limit.ok_or_else(wrong)?;
            }
            _ if (1..=AFTER_BYTES_MAX).contains(&value.len()) => parsed.after = Some(value),
            _ => return Err(wrong(name, &value, "the next of the page before".to_owned())),
        }
    }
    Ok(parsed)
}

/// Parses the query of a task's output: the stream, or `None` for both.
///
/// # Errors
///
/// When a parameter or the stream is unknown.
pub fn stream_query(query: Option<&str>) -> Result<Option<OutputStream>, TaskApiError> {
    let mut parsed = None;
    for (name, value) in parameters(query, &["stream"])? {
        parsed = Some(match &*value {
            "stdout" => OutputStream::Stdout,
            "stderr" => OutputStream::Stderr,
            _ => return Err(wrong(name, &value, "stdout or stderr".to_owned())),
        });
    }
    Ok(parsed)
}

/// Parses the query of a task's progress: milliseconds of Unix time from which on, 0 without one.
///
/// # Errors
///
/// When a parameter is unknown, or no time.
pub fn since_query(query: Option<&str>) -> Result<u64, TaskApiError> {
    let mut since_ms = 0;
    for (name, value) in parameters(query, &["since"])? {
        let wrong = || wrong(name, &value, "milliseconds of Unix time".to_owned());
        since_ms = value.parse().map_err(|_| wrong())?;
    }
    Ok(since_ms)
}

fn parameters<'a>(
    query: Option<&str>,
    known: &[&'a str],
) -> Result<Vec<(&'a str, String)>, TaskApiError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let one = |pair: &str| {
        let (given, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = known.iter().copied().find(|name| *name == given);
        let expected = || match nearest(given, known.iter().copied()) {
            Some(name) => format!("one of {}; did you mean {name}?", known.join(", ")),
            None => format!("one of {}", known.join(", ")),
        };
        let name = name.ok_or_else(|| wrong("query", given, expected()))?;
        Ok((name, percent_decoded(value)))
    };
    pairs.map(one).collect()
}

fn wrong(parameter: &str, given: &str, expected: String) -> TaskApiError {
    const SHOWN: usize = 64;
    let given = given.chars().take(SHOWN).collect();
    TaskApiError::Parameter { parameter: parameter.to_owned(), given, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_selects_tasks() {
        let all = task_query(None).unwrap();
        assert_eq!((all.status, all.after, all.limit), (None, None, 50));
        let some = task_query(Some("status=queued&limit=500&after=a%3Ab+c")).unwrap();
        assert_eq!(some.status, Some(TaskStatus::Queued));
        assert_eq!((some.after.as_deref(), some.limit), (Some("a:b c"), 500));
    }

    #[test]
    fn an_invalid_query_is_refused_with_the_valid_values() {
        for (query, parameter, expected) in [
            ("status=waiting", "status", "queued, provisioning, running"),
            ("limit=0", "limit", "1 … 500"),
            ("limit=501", "limit", "1 … 500"),
            ("limit=-1", "limit", "1 … 500"),
            ("limit=x", "limit", "1 … 500"),
            ("after=", "after", "next"),
            ("stauts=queued", "query", "did you mean status?"),
            ("zzzzzzzzz", "query", "one of status, limit, after"),
        ] {
            let error = task_query(Some(query)).unwrap_err();
            assert_eq!(error.field(), Some(parameter), "{query}");
            assert!(error.to_string().contains(expected), "{query}: {error}");
        }
    }

    #[test]
    fn a_stream_is_one_of_two() {
        assert_eq!(stream_query(None), Ok(None));
        assert_eq!(stream_query(Some("stream=stderr")), Ok(Some(OutputStream::Stderr)));
        assert!(stream_query(Some("stream=stdin")).is_err());
    }
}
