use tidegate::progress::parse_line;
use tidegate_server::tasks::execution::ExecutionQuery;
use tidegate_server::tasks::executor::{execute, execution_query, reserve};

/// Longer than the text of any refusal: a response does not grow with its request.
const ERROR_BYTES_MAX: usize = 2_048;

/// Parses what an executor is sent: the bodies of `/execute` and `/reserve`, the query of `/executions`, and a
/// report of progress. What is accepted is the same after it was written again.
pub fn run(input: &[u8]) -> bool {
    let check_error = |text: String| assert!(text.len() <= ERROR_BYTES_MAX, "{text}");
    let executed = execute(input).map_err(|error| check_error(error.to_string()));
    if let Ok(body) = &executed {
        let written = serde_json::to_vec(body).expect("a body is JSON");
        assert_eq!(execute(&written).as_ref(), Ok(body));
        assert_eq!(
            serde_json::from_slice(&written).ok().as_ref(),
            Some(body),
            "as its type reads it"
        );
    }
    let reserved = reserve(input).map_err(|error| check_error(error.to_string()));
    if let Ok(body) = &reserved {
        assert!(body.ttl.is_finite(), "JSON has no other numbers");
        let written = serde_json::to_vec(body).expect("a body is JSON");
        let again = reserve(&written).expect("what was accepted once");
        assert_eq!((&again.eval_id, again.attempt), (&body.eval_id, body.attempt));
        // The JSON parser is fast, and off by a bit in the last place.
        assert!((again.ttl - body.ttl).abs() <= body.ttl.abs() * f64::EPSILON * 2.0);
    }
    let reported = parse_line(input).map_err(|error| check_error(error.to_string()));
    if let Ok(report) = &reported {
        let written = serde_json::to_vec(report).expect("a report is JSON");
        let again = parse_line(&written).expect("what was accepted once");
        assert_eq!((&again.counters, &again.message), (&report.counters, &report.message));
        let mut merged = report.clone();
        assert_eq!((merged.merge(report), &merged), (0, report), "a repeated report");
    }
    let is_report = reported.is_ok_and(|report| !report.is_empty());
    let query = str::from_utf8(input).map(|query| execution_query(Some(query)));
    let is_query = query.is_ok_and(|query| match query {
        // A text without a known parameter says nothing.
        Ok(query) => query != ExecutionQuery::default(),
        Err(error) => {
            check_error(error.to_string());
            false
        }
    });
    executed.is_ok() || reserved.is_ok() || is_report || is_query
}
