//! The best interval between saves, found from simulated points.
//!
//! Around its best interval the cost of a job is so flat that the cheapest of a few simulated points says
//! little: within 5 % of the best it changes by a thousandth of itself. All points together say much more,
//! since the cost has the shape a/τ + b + dτ for saves, constant losses and redo.

/// A simulated point: an interval and the mean cost there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedCost {
    /// The interval, in any unit.
    pub interval: f64,
    /// Time added per useful time, or wall time, at that interval.
    pub cost: f64,
    /// Its standard error; zero where all points are equally certain.
    pub standard_error: f64,
}

/// The best interval: the minimum of a/τ + b + dτ fitted to the points by weighted least squares. `None` for
/// fewer than three different intervals, and where the points have no minimum (then the best of them lies at
/// an end of the range).
pub fn best_interval(points: &[SimulatedCost]) -> Option<f64> {
    let mut intervals: Vec<u64> = points.iter().map(|point| point.interval.to_bits()).collect();
    intervals.sort_unstable();
    intervals.dedup();
    if intervals.len() < 3 {
        return None;
    }
    let scale = points.iter().map(|point| point.interval).sum::<f64>() / points.len() as f64;
    let mut normal = [[0.0; 4]; 3];
    for point in points {
        if point.interval.is_nan() || point.interval <= 0.0 || !point.cost.is_finite() {
            return None;
        }
        let interval = point.interval / scale;
        let weight = if point.standard_error > 0.0 { point.standard_error.powi(-2) } else { 1.0 };
        let basis = [1.0 / interval, 1.0, interval];
        for (row, &left) in normal.iter_mut().zip(&basis) {
            for (cell, &right) in row.iter_mut().zip(basis.iter().chain([&point.cost])) {
                *cell += weight * left * right;
            }
        }
    }
    let [save, _, redo] = solve(normal)?;
    (save > 0.0 && redo > 0.0).then(|| scale * (save / redo).sqrt())
}

/// Solves three equations in three unknowns by elimination with pivots; `None` if they do not determine them.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let lead = rows[column];
        if lead[column].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for (number, row) in rows.iter_mut().enumerate() {
            if number != column {
                let share = row[column] / lead[column];
                for (cell, &above) in row.iter_mut().zip(&lead) {
                    *cell -= share * above;
                }
            }
        }
    }
    Some([0, 1, 2].map(|place| rows[place][3] / rows[place][place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(interval: f64, cost: f64) -> SimulatedCost {
        SimulatedCost { interval, cost, standard_error: 0.0 }
    }

    #[test]
    fn the_minimum_of_the_shape_is_found_from_points_that_surround_it_or_not() {
        let cost = |interval: f64| 16.0 / interval + 0.01 + interval / 60_000.0;
        let want = (16.0_f64 * 60_000.0).sqrt();
        for range in [[300.0, 900.0, 2_700.0], [1_200.0, 2_000.0, 4_000.0]] {
            let points = range.map(|interval| point(interval, cost(interval)));
            assert!((best_interval(&points).unwrap() - want).abs() < 1e-6 * want);
        }
    }

    #[test]
    fn points_without_a_minimum_have_none() {
        assert_eq!(best_interval(&[point(1.0, 3.0), point(2.0, 2.0)]), None);
        assert_eq!(best_interval(&[point(1.0, 3.0), point(1.0, 3.0), point(2.0, 2.0)]), None);
        let falling = [point(1.0, 3.0), point(2.0, 2.0), point(3.0, 1.0)];
        assert_eq!(best_interval(&falling), None);
        assert_eq!(best_interval(&[point(f64::NAN, 1.0)]), None);
    }
}
