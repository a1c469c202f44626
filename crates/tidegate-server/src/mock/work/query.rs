use super::super::answer::Problem;
use super::places::WorkAsk;
use std::time::Duration;

/// What work takes that does not say it, and the longest that it can say.
const WORK_MS: f64 = 20.0;
const WORK_MS_MAX: f64 = 600_000.0;

/// What `?ms=12.345&blocks=7` asks for. What else stands there is for others.
pub(in super::super) fn asked_work(query: Option<&str>) -> Result<WorkAsk, Problem> {
    let pairs = || query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let value = |name| pairs().find_map(|(found, value)| (found == name).then_some(value));
    let ms = value("ms").map_or(Some(WORK_MS), |text| text.parse().ok());
    let ms = ms.filter(|ms| (0.0..=WORK_MS_MAX).contains(ms)).ok_or_else(|| {
        Problem::invalid(Some("ms"), "Milliseconds are a number, 0 … 600000.".to_owned())
    })?;
    let blocks = value("blocks").map_or(Some(0), |text| text.parse().ok());
    let blocks = blocks.ok_or_else(|| {
        Problem::invalid(Some("blocks"), "Blocks are a whole number from 0.".to_owned())
    })?;
    Ok(WorkAsk { time: Duration::from_secs_f64(ms / 1e3), blocks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_count_and_what_is_not_said_has_a_default() {
        let asked = |query| asked_work(query).map(|ask| (ask.time.as_nanos(), ask.blocks));
        assert_eq!(asked(Some("ms=12.345&blocks=7")), Ok((12_345_000, 7)));
        assert_eq!(asked(Some("id=3&blocks=1&ms=0")), Ok((0, 1)));
        assert_eq!(asked(Some("ms=250")), Ok((250_000_000, 0)));
        assert_eq!(asked(None), Ok((20_000_000, 0)));
        for (query, wrong) in [
            ("ms=-1", "ms"),
            ("ms=NaN", "ms"),
            ("ms=600001", "ms"),
            ("ms=", "ms"),
            ("blocks=1.5", "blocks"),
            ("blocks=-1", "blocks"),
        ] {
            let problem = asked_work(Some(query)).unwrap_err();
            let is_named =
                matches!(problem, Problem::Invalid { param: Some(param), .. } if param == wrong);
            assert!(is_named, "{query}: {problem:?}");
        }
    }
}
