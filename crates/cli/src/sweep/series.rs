//! What the finished rows show: lines over one numeric key, a grid over two, the best points.
//!
//! The rows are read in passes, and what is kept of them is bounded by what a picture can show, however many
//! points there are.

use std::path::Path;

use anyhow::{Context, Result};
use pipestep_report::Measure;
use pipestep_scenario::{Factor, parse_bytes, parse_duration, parse_rate};

use super::fields::{Found, Row};
use super::manifest::Manifest;
use super::quantity::Quantity;
use super::space::places;
use super::store::read_finished;

/// Lines of a chart at most; further ones are left out, and the title says so.
const MOST_LINES: u64 = 24;
/// Points of a line at most: of more, every k-th is kept.
const MOST_ON_A_LINE: u64 = 4_000;
/// Dots of a scatter at most.
const MOST_DOTS: usize = 2_000;
/// Rows and columns of a grid at most: of more, every k-th is kept.
const MOST_CELLS: u64 = 200;

/// One swept key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// Dotted.
    pub(crate) name: String,
    /// How many values it takes.
    pub(crate) values: u64,
    /// What its values measure, if all are numbers or amounts of one kind.
    pub(crate) measure: Option<Measure>,
}

impl Key {
    /// The last part of its name.
    pub(crate) fn short(&self) -> &str {
        short(&self.name)
    }

    /// Whether it is the number of micro-batches.
    pub(crate) fn counts_micro_batches(&self) -> bool {
        self.name == "pipeline.micro_batches"
    }

    /// A value for a reader: with the key's name where it is a bare number.
    fn label(&self, value: &str) -> String {
        if self.measure.is_some() || matches!(value, "true" | "false") {
            format!("{} {value}", self.short())
        } else {
            value.to_owned()
        }
    }
}

/// The last part of a dotted key.
pub(crate) fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// One line: the points that agree in all keys but one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// The values of the other keys; empty if there are none.
    pub(crate) name: String,
    /// By the value of the one key, rising.
    pub(crate) points: Vec<(f64, Found)>,
}

/// Values over two keys, the others at their first values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grid {
    pub(crate) x: (String, Vec<String>),
    pub(crate) y: (String, Vec<String>),
    /// Row after row.
    pub(crate) cells: Vec<Option<Found>>,
    /// The values of the other keys.
    pub(crate) others: String,
}

/// A point that stands out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    pub(crate) found: Found,
    /// Its values of the swept keys, in words.
    pub(crate) at: String,
}

/// Everything that is shown of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) keys: Vec<Key>,
    /// The key along the lines, if one is numeric.
    pub(crate) along: Option<usize>,
    pub(crate) series: Vec<Series>,
    /// How many lines there would be.
    pub(crate) all_series: u64,
    pub(crate) grid: Option<Grid>,
    /// The points themselves, as far as they are few; only where no key is numeric.
    pub(crate) all: Vec<Best>,
    pub(crate) counts: Counts,
    /// The best point that fits, in the order of [`Quantity::ALL`]; none where no point has that number.
    pub(crate) best: [Option<Best>; Quantity::ALL.len()],
    /// Whether any point has that number.
    pub(crate) any: [bool; Quantity::ALL.len()],
}

/// How many points came to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) simulated: u64,
    pub(crate) refused: u64,
    /// Of those simulated, how many exceed a budget.
    pub(crate) too_large: u64,
    /// Of those simulated, how many have a budget.
    pub(crate) with_budget: u64,
    /// Why the first one was refused.
    pub(crate) reason: String,
}

impl Counts {
    /// Whether there is no point that was simulated and fits.
    pub(crate) const fn none_fits(&self) -> bool {
        self.simulated == self.too_large
    }
}

/// Reads the rows of a directory whose sweep is done.
///
/// # Errors
/// What the system reports; rows that no sweep wrote.
pub(crate) fn read(directory: &Path, manifest: &Manifest) -> Result<Shown> {
    let keys = measured_keys(directory, manifest)?;
    let mut gathering = Gathering::new(keys);
    each_row(directory, manifest, |row| gathering.take(&row))?;
    Ok(gathering.finish())
}

/// Calls `take` for each row.
fn each_row(directory: &Path, manifest: &Manifest, mut take: impl FnMut(Row)) -> Result<()> {
    let keys = manifest.keys().len();
    let mut reader = read_finished(directory)?;
    let mut record = csv::StringRecord::new();
    let wrong = || format!("`{}` has results that no sweep wrote", directory.display());
    while reader.read_record(&mut record).with_context(wrong)? {
        take(Row::read(&record, keys).with_context(wrong)?);
    }
    Ok(())
}

/// The keys, with what all their values measure.
fn measured_keys(directory: &Path, manifest: &Manifest) -> Result<Vec<Key>> {
    let mut measures: Vec<Option<Option<Measure>>> = vec![None; manifest.keys().len()];
    each_row(directory, manifest, |row| {
        for (measure, value) in measures.iter_mut().zip(&row.values) {
            let of_value = number(value).map(|(_, measure)| measure);
            *measure = match *measure {
                None => Some(of_value),
                Some(so_far) => Some(so_far.filter(|so_far| Some(*so_far) == of_value)),
            };
        }
    })?;
    let key = |((name, values), measure): ((String, u64), Option<Option<Measure>>)| Key {
        name,
        values,
        measure: measure.flatten(),
    };
    Ok(manifest.keys().into_iter().zip(measures).map(key).collect())
}

/// A value as a number with what it measures, if it is one.
pub(crate) fn number(value: &str) -> Option<(f64, Measure)> {
    if let Ok(number) = value.replace('_', "").parse::<f64>() {
        return number.is_finite().then_some((number, Measure::Number));
    }
    if value.contains('/')
        && let Ok(fraction) = Factor::parse(value)
    {
        return Some((fraction.as_f64(), Measure::Number));
    }
    if let Ok(time) = parse_duration(value) {
        return Some((time.as_nanos() as f64, Measure::Time));
    }
    if let Ok(bytes) = parse_bytes(value) {
        return Some((bytes.get() as f64, Measure::Bytes));
    }
    let second = 1_000_000_000;
    let rate = parse_rate(value).ok()?;
    let in_a_second = |bytes| rate.time_for(pipestep_engine::Bytes::new(bytes)).ok();
    let time = in_a_second(second)?.as_nanos();
    (time > 0).then(|| (second as f64 * second as f64 / time as f64, Measure::Bytes))
}

/// What has been seen so far.
struct Gathering {
    sizes: Vec<u64>,
    shown: Shown,
    /// The two keys of the grid, across and upwards.
    grid: Option<(usize, usize)>,
}

impl Gathering {
    fn new(keys: Vec<Key>) -> Self {
        let sizes: Vec<u64> = keys.iter().map(|key| key.values).collect();
        let mut numeric: Vec<usize> =
            (0..keys.len()).filter(|&key| keys[key].measure.is_some() && keys[key].values > 1).collect();
        // The key with the most values makes the longest lines.
        numeric.sort_by_key(|&key| std::cmp::Reverse(keys[key].values));
        let along = numeric.first().copied();
        let all_series = match along {
            Some(along) => sizes.iter().product::<u64>() / sizes[along].max(1),
            None => 0,
        };
        let grid = along.zip(numeric.get(1).copied());
        let shown = Shown {
            grid: grid.map(|(x, y)| Grid {
                x: (keys[x].name.clone(), Vec::new()),
                y: (keys[y].name.clone(), Vec::new()),
                cells: vec![None; (kept(sizes[x], MOST_CELLS) * kept(sizes[y], MOST_CELLS)) as usize],
                others: String::new(),
            }),
            series: vec![
                Series { name: String::new(), points: Vec::new() };
                all_series.min(MOST_LINES) as usize
            ],
            keys,
            along,
            all_series,
            all: Vec::new(),
            counts: Counts::default(),
            best: [const { None }; Quantity::ALL.len()],
            any: [false; Quantity::ALL.len()],
        };
        Self { sizes, shown, grid }
    }

    fn take(&mut self, row: &Row) {
        let places = places(&self.sizes, row.point);
        self.take_into_grid(row, &places);
        let counts = &mut self.shown.counts;
        let Some(found) = row.found else {
            if counts.refused == 0 {
                counts.reason.clone_from(&row.reason);
            }
            counts.refused += 1;
            return;
        };
        counts.simulated += 1;
        for (any, number) in self.shown.any.iter_mut().zip(found.quantities) {
            *any |= number.is_some();
        }
        counts.with_budget += u64::from(found.fits.is_some());
        counts.too_large += u64::from(found.fits == Some(false));
        self.take_into_series(row, found, &places);
        if found.fits != Some(false) {
            self.compare(row, found);
        }
    }

    fn take_into_series(&mut self, row: &Row, found: Found, places: &[u64]) {
        let Some(along) = self.shown.along else {
            if self.shown.all.len() < MOST_DOTS {
                let at = names(&self.shown.keys, &row.values, 0..places.len());
                self.shown.all.push(Best { found, at });
            }
            return;
        };
        if !places[along].is_multiple_of(step(self.sizes[along], MOST_ON_A_LINE)) {
            return;
        }
        let others = (0..places.len()).filter(|&key| key != along);
        let line = others.clone().fold(0, |line, key| line * self.sizes[key] + places[key]);
        let name = || names(&self.shown.keys, &row.values, others);
        if let (Some(series), Some((x, _))) =
            (self.shown.series.get_mut(line as usize), number(&row.values[along]))
        {
            if series.name.is_empty() {
                series.name = name();
            }
            series.points.push((x, found));
        }
    }

    fn take_into_grid(&mut self, row: &Row, places: &[u64]) {
        let (Some((x, y)), Some(grid)) = (self.grid, &mut self.shown.grid) else { return };
        let others = (0..places.len()).filter(|&key| key != x && key != y);
        let (step_x, step_y) = (step(self.sizes[x], MOST_CELLS), step(self.sizes[y], MOST_CELLS));
        let off = others.clone().any(|key| places[key] > 0);
        if off || !places[x].is_multiple_of(step_x) || !places[y].is_multiple_of(step_y) {
            return;
        }
        let (column, line) = ((places[x] / step_x) as usize, (places[y] / step_y) as usize);
        if column == grid.x.1.len() {
            grid.x.1.push(row.values[x].clone());
        }
        if line == grid.y.1.len() {
            grid.y.1.push(row.values[y].clone());
        }
        grid.others = names(&self.shown.keys, &row.values, others);
        grid.cells[line * kept(self.sizes[x], MOST_CELLS) as usize + column] = row.found;
    }

    /// Keeps the point where it is better than those before it.
    fn compare(&mut self, row: &Row, found: Found) {
        let mut at = None;
        for (best, quantity) in self.shown.best.iter_mut().zip(Quantity::ALL) {
            let Some(value) = found.get(quantity) else { continue };
            let before = best.as_ref().and_then(|best| best.found.get(quantity));
            if before.is_none_or(|before| quantity.is_better(value, before)) {
                let at =
                    at.get_or_insert_with(|| names(&self.shown.keys, &row.values, 0..self.shown.keys.len()));
                *best = Some(Best { found, at: at.clone() });
            }
        }
    }

    fn finish(mut self) -> Shown {
        for series in &mut self.shown.series {
            series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        self.shown.series.retain(|series| !series.points.is_empty());
        self.shown
    }
}

/// Of `count` values every which is kept so that at most `most` are.
fn step(count: u64, most: u64) -> u64 {
    count.div_ceil(most).max(1)
}

/// How many are kept then.
fn kept(count: u64, most: u64) -> u64 {
    count.div_ceil(step(count, most))
}

/// The values of some keys, in words.
fn names(keys: &[Key], values: &[String], which: impl Iterator<Item = usize>) -> String {
    let names: Vec<String> = which.map(|key| keys[key].label(&values[key])).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, values: u64, measure: Option<Measure>) -> Key {
        Key { name: name.to_owned(), values, measure }
    }

    fn row(point: u64, values: &[&str], makespan_ns: u64) -> Row {
        let value = makespan_ns as f64;
        let quantities = Quantity::ALL.map(|quantity| (quantity == Quantity::Makespan).then_some(value));
        let found = Found { quantities, ..Found::default() };
        Row {
            point,
            values: values.iter().map(ToString::to_string).collect(),
            found: (makespan_ns > 0).then_some(found),
            reason: "no".to_owned(),
        }
    }

    fn gathered(keys: Vec<Key>, rows: &[Row]) -> Shown {
        let mut gathering = Gathering::new(keys);
        for row in rows {
            gathering.take(row);
        }
        gathering.finish()
    }

    #[test]
    fn numbers_and_amounts_are_measured() {
        assert_eq!(number("12"), Some((12.0, Measure::Number)));
        assert_eq!(number("1_000"), Some((1_000.0, Measure::Number)));
        assert_eq!(number("10 ms"), Some((1e7, Measure::Time)));
        assert_eq!(number("2 GB"), Some((2e9, Measure::Bytes)));
        assert_eq!(number("2 GB/s"), Some((2e9, Measure::Bytes)));
        assert_eq!(number("1/4"), Some((0.25, Measure::Number)));
        assert_eq!(number("1f1b"), None);
        assert_eq!(number("inf"), None);
    }

    #[test]
    fn a_line_for_each_value_of_the_other_key() {
        let keys = vec![key("a.m", 3, Some(Measure::Number)), key("a.s", 2, None)];
        let values = [["8", "x"], ["8", "y"], ["2", "x"], ["2", "y"], ["4", "x"], ["4", "y"]];
        let rows: Vec<Row> =
            values.iter().enumerate().map(|(i, v)| row(i as u64, v, [9, 8, 7, 0, 5, 4][i])).collect();
        let shown = gathered(keys, &rows);
        let lines: Vec<(String, Vec<f64>)> = shown
            .series
            .iter()
            .map(|series| (series.name.clone(), series.points.iter().map(|point| point.0).collect()))
            .collect();
        assert_eq!(lines, [("x".to_owned(), vec![2.0, 4.0, 8.0]), ("y".to_owned(), vec![4.0, 8.0])]);
        assert_eq!(
            shown.counts,
            Counts { simulated: 5, refused: 1, reason: "no".into(), ..Counts::default() }
        );
        let shortest = shown.best.into_iter().next().flatten();
        assert_eq!(shortest.expect("there are points").at, "m 4, y");
        assert!(shown.grid.is_none());
    }

    #[test]
    fn two_numeric_keys_make_a_grid_with_gaps() {
        let keys = vec![
            key("a.p", 2, Some(Measure::Number)),
            key("a.m", 3, Some(Measure::Number)),
            key("a.s", 2, None),
        ];
        let mut rows = Vec::new();
        for (i, p) in ["1", "2"].into_iter().enumerate() {
            for (j, m) in ["5", "6", "7"].into_iter().enumerate() {
                for (k, s) in ["x", "y"].into_iter().enumerate() {
                    let point = (i * 6 + j * 2 + k) as u64;
                    rows.push(row(point, &[p, m, s], if (i, j) == (1, 0) { 0 } else { 100 + point }));
                }
            }
        }
        let grid = gathered(keys, &rows).grid.expect("two numeric keys");
        assert_eq!(
            (grid.x.1, grid.y.1),
            (vec!["5".into(), "6".into(), "7".to_owned()], vec!["1".into(), "2".to_owned()])
        );
        let cells: Vec<Option<u64>> = grid
            .cells
            .iter()
            .map(|cell| cell.and_then(|found| Some(found.get(Quantity::Makespan)? as u64)))
            .collect();
        assert_eq!(cells, [Some(100), Some(102), Some(104), None, Some(108), Some(110)]);
        assert_eq!(grid.others, "x");
    }

    #[test]
    fn what_is_kept_does_not_grow_with_the_points() {
        let keys =
            vec![key("a.m", 1 << 20, Some(Measure::Number)), key("a.n", 1 << 12, Some(Measure::Number))];
        let gathering = Gathering::new(keys);
        assert_eq!(gathering.shown.series.len() as u64, MOST_LINES);
        assert!(
            gathering.shown.grid.expect("two numeric keys").cells.len() as u64 <= MOST_CELLS * MOST_CELLS
        );
        assert!(kept(1 << 20, MOST_ON_A_LINE) <= MOST_ON_A_LINE);
        assert_eq!((step(7, 3), kept(7, 3), kept(3, 3)), (3, 3, 3));
    }
}
