//! One line of a search over keys: the points that differ in one continuous key only, and how to look closer round
//! the best of them.
//!
//! One idea: between the best point and each of its neighbours the middle is tried, again and again, until neither
//! neighbour can be told apart from the best, or is within a hundredth of it. Where the objective falls and then
//! rises along the key this closes in on its lowest point; where it does not, it is the best of what was tried.

use pipestep_report::Difference;

/// Nearer to the best point than this share of it there is nothing to look for.
const NEAR: f64 = 0.01;
/// How often middles are tried. Each halves the room: from a factor of two to a hundredth takes seven.
const ROUNDS: usize = 12;

/// A point that was simulated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Where, in base units.
    pub(crate) at: f64,
    /// What is to be as low as possible, run by run.
    pub(crate) losses: Vec<f64>,
}

impl Point {
    fn mean(&self) -> f64 {
        self.losses.iter().sum::<f64>() / self.losses.len().max(1) as f64
    }
}

/// Looks closer round the best point of a line. `probe` simulates what it is given and gives back what is new.
pub(crate) fn closer(mut line: Vec<Point>, mut probe: impl FnMut(&[f64]) -> Vec<Point>) -> Vec<Point> {
    for _ in 0..ROUNDS {
        line.sort_by(|one, other| one.at.total_cmp(&other.at));
        let middles = middles(&line);
        let new = if middles.is_empty() { Vec::new() } else { probe(&middles) };
        if new.is_empty() {
            break;
        }
        line.extend(new);
    }
    line
}

/// The best point's place in a line.
pub(crate) fn best(line: &[Point]) -> Option<usize> {
    (0..line.len()).min_by(|&one, &other| line[one].mean().total_cmp(&line[other].mean()))
}

/// The middles on both sides of the best point; none where nothing is to be gained by them.
fn middles(line: &[Point]) -> Vec<f64> {
    let Some(place) = best(line) else { return Vec::new() };
    let here = &line[place];
    let beside = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
    let beside: Vec<&Point> = beside.filter_map(|place| line.get(place)).collect();
    let is_worth_it = |other: &&Point| {
        let differs =
            Difference::of(&other.losses, &here.losses).is_some_and(|difference| difference.is_sure(2));
        differs && (other.at - here.at).abs() > NEAR * here.at.abs()
    };
    if !beside.iter().any(is_worth_it) {
        return Vec::new();
    }
    beside.iter().map(|other| middle(here.at, other.at)).collect()
}

/// Half-way by factors, or by steps where one end is zero.
fn middle(one: f64, other: f64) -> f64 {
    if one > 0.0 && other > 0.0 { (one * other).sqrt() } else { f64::midpoint(one, other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a function at the powers of a factor.
    fn grid(of: impl Fn(f64) -> f64, from: f64, factor: f64, count: i32) -> Vec<Point> {
        let at = |power| from * factor.powi(power);
        (0..count).map(|power| Point { at: at(power), losses: vec![of(at(power))] }).collect()
    }

    #[test]
    fn the_lowest_point_is_found_to_a_hundredth() {
        // a/x + x/b with its minimum anywhere in the range, on coarse grids of any factor.
        for (number, factor) in (0..60).zip([1.5, 2.0, 4.0, 10.0].into_iter().cycle()) {
            let lowest = 10.0 * 1.07_f64.powi(number);
            let of = |x: f64| lowest / x + x / lowest;
            let mut probes = 0;
            let line = closer(grid(of, 1.0, factor, 18), |wanted| {
                probes += wanted.len();
                wanted.iter().map(|&at| Point { at, losses: vec![of(at)] }).collect()
            });
            let found = line[best(&line).expect("points")].at;
            assert!((found / lowest - 1.0).abs() < 0.011, "{found} for {lowest}");
            assert!(probes <= 2 * ROUNDS, "{probes}");
        }
    }

    #[test]
    fn what_scatter_hides_is_not_looked_for() {
        // Ten runs whose scatter does not cancel: the points differ by less than it.
        let noisy = |at: f64| {
            let luck = |run: u32| f64::from((run + at as u32) % 2 * 100);
            Point { at, losses: (0..10).map(|run| 1_000.0 + (at - 3.0).abs() / 10.0 + luck(run)).collect() }
        };
        let line: Vec<Point> = [1.0, 2.0, 3.0, 4.0, 5.0].map(noisy).into();
        let mut probes = 0;
        let after = closer(line.clone(), |wanted| {
            probes += wanted.len();
            Vec::new()
        });
        assert_eq!((after, probes), (line, 0));
    }

    #[test]
    fn the_end_of_a_range_is_looked_at_from_inside_only() {
        let of = |x: f64| x;
        let mut tried = Vec::new();
        closer(grid(of, 8.0, 2.0, 3), |wanted| {
            tried.extend_from_slice(wanted);
            wanted.iter().map(|&at| Point { at, losses: vec![of(at)] }).collect()
        });
        assert!(!tried.is_empty() && tried.iter().all(|at| (8.0..16.0).contains(at)), "{tried:?}");
        assert!(closer(Vec::new(), |_| unreachable!("there is nothing to look round")).is_empty());
    }
}
