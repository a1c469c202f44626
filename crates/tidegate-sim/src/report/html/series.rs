//! The points of a line that are drawn.

use crate::report::Line;

/// No line is drawn with more points than this: it is more than a chart has pixels for.
pub(super) const POINTS_MAX: usize = 600;

/// Keeps of each stretch of points the least, the greatest, and one without a value.
const KEPT_OF_A_STRETCH: usize = 3;

/// A moment in seconds, and the value.
pub(super) type Point = (f64, Option<f64>);

/// The line's points, thinned so that peaks and gaps remain.
pub(super) fn thinned(line: &Line) -> Vec<Point> {
    let finite = |&(at_s, value): &Point| (at_s, value.filter(|value| value.is_finite()));
    let points: Vec<Point> =
        line.points.iter().map(finite).filter(|(at_s, _)| at_s.is_finite()).collect();
    if points.len() <= POINTS_MAX {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS_MAX / KEPT_OF_A_STRETCH);
    points.chunks(stretch).flat_map(kept).collect()
}

fn kept(stretch: &[Point]) -> Vec<Point> {
    let valued = || (0..).zip(stretch).filter_map(|(at, (_, value))| Some((at, (*value)?)));
    let by_value = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let mut kept: Vec<usize> = [valued().min_by(by_value), valued().max_by(by_value)]
        .into_iter()
        .flatten()
        .map(|(at, _)| at)
        .chain(stretch.iter().position(|(_, value)| value.is_none()))
        .collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|at| stretch[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: Vec<Point>) -> Line {
        Line { name: "x".to_owned(), points }
    }

    #[test]
    fn a_long_line_keeps_its_peak_and_its_gap() {
        let value = |at: u32| match at {
            70_000 => Some(99.0),
            30_000..=30_500 => None,
            _ => Some(f64::from(at % 7)),
        };
        let long = line((0..100_000).map(|at| (f64::from(at), value(at))).collect());
        let thin = thinned(&long);
        assert!(thin.len() <= POINTS_MAX, "{}", thin.len());
        assert!(thin.contains(&(70_000.0, Some(99.0))));
        assert!(
            thin.iter()
                .any(|(at_s, value)| *at_s > 29_500.0 && *at_s < 31_000.0 && value.is_none())
        );
        assert!(thin.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        let odd = line(vec![(0.0, Some(1.0)), (1.0, Some(f64::NAN)), (2.0, Some(f64::INFINITY))]);
        assert_eq!(thinned(&odd), [(0.0, Some(1.0)), (1.0, None), (2.0, None)]);
    }
}
