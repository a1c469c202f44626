use super::problem::Problem;
use crate::mock::work::WorkRequest;
use std::time::Duration;

/// Default and maximum duration.
const WORK_MS: f64 = 20.0;
const WORK_MS_MAX: f64 = 600_000.0;

/// Work of a query such as `?ms=12.345&blocks=7`; other parameters are ignored.
pub(super) fn parse_work(query: Option<&str>) -> Result<WorkRequest, Problem> {
    let pairs = || query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let value = |name| pairs().find_map(|(found, value)| (found == name).then_some(value));
    let ms = value("ms").map_or(Some(WORK_MS), |text| text.parse().ok());
    let ms = ms.filter(|ms| (0.0..=WORK_MS_MAX).contains(ms)).ok_or_else(|| {
        Problem::invalid(Some("ms"), "ms must be a number, 0 … 600000.".to_owned())
    })?;
    let blocks = value("blocks").map_or(Some(0), |text| text.parse().ok());
    let blocks = blocks.ok_or_else(|| {
        Problem::invalid(Some("blocks"), "blocks must be a whole number from 0.".to_owned())
    })?;
    Ok(WorkRequest { time: Duration::from_secs_f64(ms / 1e3), blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_fractions_and_defaults() {
        let parsed = |query| parse_work(query).map(|work| (work.time.as_nanos(), work.blocks));
        assert_eq!(parsed(Some("ms=12.345&blocks=7")), Ok((12_345_000, 7)));
        assert_eq!(parsed(Some("id=3&blocks=1&ms=0")), Ok((0, 1)));
        assert_eq!(parsed(Some("ms=250")), Ok((250_000_000, 0)));
        assert_eq!(parsed(None), Ok((20_000_000, 0)));
        for (query, wrong) in [
            ("ms=-1", "ms"),
            ("ms=NaN", "ms"),
            ("ms=600001", "ms"),
            ("ms=", "ms"),
            ("blocks=1.5", "blocks"),
            ("blocks=-1", "blocks"),
        ] {
            let problem = parse_work(Some(query)).unwrap_err();
            let is_named =
                matches!(problem, Problem::Invalid { param: Some(param), .. } if param == wrong);
            assert!(is_named, "{query}: {problem:?}");
        }
    }
}
