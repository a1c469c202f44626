use super::TaskApiError;
use crate::config::nearest;
use crate::control::percent_decoded;
use tidegate::task::{OutputStream, TaskStatus};
use tidegate::tasks::TaskQuery;

const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 500;
/// More than any store's place in a list has.
const AFTER_BYTES_MAX: usize = 512;

/// Which tasks a query asks for.
///
/// # Errors
///
/// When there is no such parameter, or its value can't be.
pub fn task_query(query: Option<&str>) -> Result<TaskQuery, TaskApiError> {
    let mut asked = TaskQuery { limit: LIMIT_DEFAULT, ..TaskQuery::default() };
    for (name, value) in parameters(query, &["status", "limit", "after"])? {
        match name {
            "status" => {
                let status = TaskStatus::from_name(&value);
                let names = TaskStatus::ALL.map(TaskStatus::name).join(", ");
                let wrong = || wrong(name, &value, format!("one of {names}"));
                asked.status = Some(status.ok_or_else(wrong)?);
            }
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                let wrong = || wrong(name, &value, format!("a whole number, 1 … {LIMIT_MAX}"));
                asked.limit = limit.ok_or_else(wrong)?;
            }
            _ if (1..=AFTER_BYTES_MAX).contains(&value.len()) => asked.after = Some(value),
            _ => return Err(wrong(name, &value, "what the page before gave as next".to_owned())),
        }
    }
    Ok(asked)
}

/// Which stream of a task's output a query asks for; `None` for both.
///
/// # Errors
///
/// When there is no such parameter, or no such stream.
pub fn stream_query(query: Option<&str>) -> Result<Option<OutputStream>, TaskApiError> {
    let mut asked = None;
    for (name, value) in parameters(query, &["stream"])? {
        asked = Some(match &*value {
            "stdout" => OutputStream::Stdout,
            "stderr" => OutputStream::Stderr,
            _ => return Err(wrong(name, &value, "stdout or stderr".to_owned())),
        });
    }
    Ok(asked)
}

fn parameters<'a>(
    query: Option<&str>,
    known: &[&'a str],
) -> Result<Vec<(&'a str, String)>, TaskApiError> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let one = |pair: &str| {
        let (given, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = known.iter().copied().find(|name| *name == given);
        let known_ones = || known.join(", ");
        let meant = || match nearest(given, known.iter().copied()) {
            Some(name) => format!("{name}; there are: {}", known_ones()),
            None => format!("one of {}", known_ones()),
        };
        let name = name.ok_or_else(|| wrong("query", given, meant()))?;
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
    fn a_query_says_which_tasks() {
        let all = task_query(None).unwrap();
        assert_eq!((all.status, all.after, all.limit), (None, None, 50));
        let some = task_query(Some("status=queued&limit=500&after=a%3Ab+c")).unwrap();
        assert_eq!(some.status, Some(TaskStatus::Queued));
        assert_eq!((some.after.as_deref(), some.limit), (Some("a:b c"), 500));
    }

    #[test]
    fn a_wrong_query_is_told_what_there_is() {
        for (query, parameter, told) in [
            ("status=waiting", "status", "queued, provisioning, running"),
            ("limit=0", "limit", "1 … 500"),
            ("limit=501", "limit", "1 … 500"),
            ("limit=-1", "limit", "1 … 500"),
            ("limit=x", "limit", "1 … 500"),
            ("after=", "after", "next"),
            ("stauts=queued", "query", "expected is status; there are"),
            ("zzzzzzzzz", "query", "one of status, limit, after"),
        ] {
            let error = task_query(Some(query)).unwrap_err();
            assert_eq!(error.field(), Some(parameter), "{query}");
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
    }

    #[test]
    fn a_stream_is_one_of_two() {
        assert_eq!(stream_query(None), Ok(None));
        assert_eq!(stream_query(Some("stream=stderr")), Ok(Some(OutputStream::Stderr)));
        assert!(stream_query(Some("stream=stdin")).is_err());
    }
}
