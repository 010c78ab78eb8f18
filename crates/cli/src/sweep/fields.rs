//! The columns of `results.csv`, and rows as text.
//!
//! A row is one line: line ends inside values become spaces, so that a torn line is known by its missing end.

use std::borrow::Cow;

use anyhow::{Context, Result};
use pipestep_engine::Bytes;

use super::quantity::Quantity;
use super::space::Space;

/// The column before those of the swept keys.
pub(crate) const FIRST: &str = "point";

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words.
    Text,
    /// A whole number below 2^63.
    Whole,
    /// A number.
    Real,
    /// `true` or `false`.
    Truth,
    /// Whole numbers with spaces between.
    Wholes,
}

/// Columns after those of the swept keys. What does not apply is empty.
pub(crate) const LAST: [(&str, Kind); 23] = [
    ("schedule", Kind::Text),
    ("ranks", Kind::Whole),
    ("chunks", Kind::Whole),
    ("micro_batches", Kind::Whole),
    ("makespan_ns", Kind::Whole),
    ("bubble_by_makespan", Kind::Real),
    ("bubble_by_longest_span", Kind::Real),
    ("bubble_over_ideal", Kind::Real),
    ("utilisation", Kind::Real),
    ("tokens_per_second", Kind::Real),
    ("peak_bytes", Kind::Whole),
    ("peak_bytes_by_rank", Kind::Wholes),
    ("budget_bytes", Kind::Whole),
    ("fits", Kind::Truth),
    ("jitter_mean_ns", Kind::Real),
    ("jitter_standard_error_ns", Kind::Real),
    ("jitter_p95_ns", Kind::Real),
    ("job_elapsed_ns", Kind::Real),
    ("job_useful_fraction", Kind::Real),
    ("rl_round_ns", Kind::Whole),
    ("rl_useful_samples_per_s", Kind::Real),
    ("simulated", Kind::Truth),
    ("reason", Kind::Text),
];

/// What one legal point came to: whatever parts its scenario has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields {
    pub(crate) step: Option<StepFields>,
    pub(crate) jitter: Option<JitterFields>,
    pub(crate) job: Option<JobFields>,
    pub(crate) rl: Option<RlFields>,
}

/// Of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepFields {
    pub(crate) schedule: String,
    pub(crate) ranks: usize,
    pub(crate) chunks: usize,
    pub(crate) micro_batches: usize,
    pub(crate) makespan_ns: u64,
    pub(crate) bubble: [f64; 3],
    pub(crate) utilisation: f64,
    pub(crate) tokens_per_second: Option<f64>,
    /// By rank.
    pub(crate) peaks: Vec<Bytes>,
    /// By rank.
    pub(crate) budget: Option<Vec<Bytes>>,
}

/// Of the makespans of a step whose lengths are drawn, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JitterFields {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
    pub(crate) p95: f64,
}

/// Of a job, the mean of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct JobFields {
    pub(crate) elapsed_ns: f64,
    pub(crate) useful_fraction: f64,
}

/// Of rounds of RL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RlFields {
    pub(crate) round_ns: u64,
    pub(crate) useful_samples_per_s: f64,
}

impl StepFields {
    /// Whether every rank stays within its budget.
    fn fits(&self) -> Option<bool> {
        let budget = self.budget.as_ref()?;
        Some(self.peaks.iter().zip(budget).all(|(peak, budget)| peak <= budget))
    }

    /// The highest peak of all ranks.
    fn peak(&self) -> Bytes {
        self.peaks.iter().copied().max().unwrap_or(Bytes::ZERO)
    }

    fn cells(&self) -> [String; 14] {
        let shown = |number: Option<String>| number.unwrap_or_default();
        let by_rank: Vec<String> = self.peaks.iter().map(|peak| peak.get().to_string()).collect();
        let budget = self.budget.as_ref().and_then(|budget| budget.iter().min());
        let [by_makespan, by_longest_span, over_ideal] = self.bubble.map(|rate| rate.to_string());
        [
            self.schedule.clone(),
            self.ranks.to_string(),
            self.chunks.to_string(),
            self.micro_batches.to_string(),
            self.makespan_ns.to_string(),
            by_makespan,
            by_longest_span,
            over_ideal,
            self.utilisation.to_string(),
            shown(self.tokens_per_second.map(|rate| rate.to_string())),
            self.peak().get().to_string(),
            by_rank.join(" "),
            shown(budget.map(|bytes| bytes.get().to_string())),
            shown(self.fits().map(|fits| fits.to_string())),
        ]
    }
}

impl Fields {
    fn cells(&self) -> Vec<String> {
        let mut cells: Vec<String> = match &self.step {
            Some(step) => step.cells().into(),
            None => vec![String::new(); 14],
        };
        cells.extend(match self.jitter {
            Some(runs) => [runs.mean, runs.standard_error, runs.p95].map(|number| number.to_string()),
            None => [const { String::new() }; 3],
        });
        cells.extend(match self.job {
            Some(job) => [job.elapsed_ns.to_string(), job.useful_fraction.to_string()],
            None => [String::new(), String::new()],
        });
        cells.extend(match self.rl {
            Some(rl) => [rl.round_ns.to_string(), rl.useful_samples_per_s.to_string()],
            None => [String::new(), String::new()],
        });
        cells.extend([true.to_string(), String::new()]);
        cells
    }
}

/// The header line of a sweep over `space`.
pub(crate) fn header(space: &Space) -> Result<String> {
    let keys = space.axes().iter().map(|axis| axis.key.clone());
    let last = LAST.into_iter().map(|(name, _)| name.to_owned());
    line(std::iter::once(FIRST.to_owned()).chain(keys).chain(last))
}

/// The line of a point: what it came to, or why it is not legal.
pub(crate) fn row(point: u64, values: &[Cow<'_, str>], outcome: Result<Fields, String>) -> Result<String> {
    let cells = match outcome {
        Ok(fields) => fields.cells(),
        Err(reason) => {
            let mut cells = vec![String::new(); LAST.len() - 2];
            cells.extend([false.to_string(), reason]);
            cells
        }
    };
    let values = values.iter().map(|value| bare(value).to_owned());
    line(std::iter::once(point.to_string()).chain(values).chain(cells))
}

/// A value without the quotes of a TOML string.
pub(crate) fn bare(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).filter(|inner| !inner.contains(['"', '\'', '\\'])).unwrap_or(value)
}

/// The point that a line is about.
pub(crate) fn point_of(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn line(cells: impl Iterator<Item = String>) -> Result<String> {
    let mut to = csv::Writer::from_writer(Vec::new());
    let cells = cells.map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" "));
    to.write_record(cells)?;
    let bytes = to.into_inner().context("a list of bytes takes everything")?;
    Ok(String::from_utf8(bytes)?)
}

/// A line of `results.csv` as its reader sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) point: u64,
    /// Of the swept keys.
    pub(crate) values: Vec<String>,
    /// What drawings need of it; nothing where the point is not legal.
    pub(crate) found: Option<Found>,
    /// Why not.
    pub(crate) reason: String,
}

/// The numbers of a row that are drawn and summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) ranks: Option<f64>,
    pub(crate) micro_batches: Option<f64>,
    /// In the order of [`Quantity::ALL`].
    pub(crate) quantities: [Option<f64>; Quantity::ALL.len()],
    pub(crate) budget_bytes: Option<u64>,
    pub(crate) fits: Option<bool>,
}

impl Found {
    /// One of its numbers.
    pub(crate) fn get(&self, quantity: Quantity) -> Option<f64> {
        let place = Quantity::ALL.iter().position(|&one| one == quantity)?;
        self.quantities[place]
    }
}

impl Row {
    /// Reads a record of a sweep over `keys` keys; `None` if it is none.
    pub(crate) fn read(record: &csv::StringRecord, keys: usize) -> Option<Self> {
        if record.len() != 1 + keys + LAST.len() {
            return None;
        }
        let cell = |name: &str| {
            let place = LAST.iter().position(|&(column, _)| column == name)?;
            record.get(1 + keys + place).filter(|text| !text.is_empty())
        };
        let number = |name: &str| cell(name).and_then(|text| text.parse::<f64>().ok());
        let found = (cell("simulated")? == "true").then(|| Found {
            ranks: number("ranks"),
            micro_batches: number("micro_batches"),
            quantities: Quantity::ALL.map(|quantity| number(quantity.column())),
            budget_bytes: cell("budget_bytes").and_then(|text| text.parse().ok()),
            fits: cell("fits").and_then(|text| text.parse().ok()),
        });
        Some(Self {
            point: record.get(0)?.parse().ok()?,
            values: (1..=keys).filter_map(|place| record.get(place).map(str::to_owned)).collect(),
            found,
            reason: cell("reason").unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_scenario::{Axis, Sweep};

    fn fields() -> Fields {
        let step = StepFields {
            schedule: "1f1b".to_owned(),
            ranks: 2,
            chunks: 1,
            micro_batches: 8,
            makespan_ns: 347_000_000,
            bubble: [0.25, 0.25, 1.0 / 3.0],
            utilisation: 0.75,
            tokens_per_second: Some(2_950.5),
            peaks: vec![Bytes::new(7), Bytes::new(9)],
            budget: Some(vec![Bytes::new(8), Bytes::new(8)]),
        };
        let rl = RlFields { round_ns: 5_000, useful_samples_per_s: 0.5 };
        Fields { step: Some(step), jitter: None, job: None, rl: Some(rl) }
    }

    fn read(line: &str) -> Option<Row> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        Row::read(&reader.records().next()?.ok()?, 2)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let line = row(12, &["8", "\"1f1b\""].map(Cow::from), Ok(fields())).expect("plain");
        assert_eq!(
            line,
            "12,8,1f1b,1f1b,2,1,8,347000000,0.25,0.25,0.3333333333333333,0.75,2950.5,9,7 9,8,false,,,,,,5000,0.5,true,\n"
        );
        let row = read(&line).expect("it is whole");
        let found = row.found.expect("it is legal");
        assert_eq!((row.point, row.values), (12, vec!["8".to_owned(), "1f1b".to_owned()]));
        let expected =
            [Some(347e6), Some(2_950.5), Some(0.75), Some(9.0), None, None, None, Some(5e3), Some(0.5)];
        assert_eq!((found.quantities, found.fits), (expected, Some(false)));
    }

    #[test]
    fn a_reason_stays_on_its_line() {
        let line =
            row(3, &["1", "x,\"y\""].map(Cow::from), Err("no, \"really\"\n  not".to_owned())).expect("plain");
        assert_eq!(line.matches('\n').count(), 1);
        let row = read(&line).expect("it is whole");
        assert_eq!((row.found, row.reason.as_str()), (None, "no, \"really\" not"));
        assert_eq!(row.values[1], "x,\"y\"");
    }

    #[test]
    fn header_and_rows_have_the_same_columns() {
        let axes =
            ["pipeline.ranks=1", "pipeline.chunks=1"].map(|text| Axis::vary(text).expect("it is right"));
        let space = Space::new(&Sweep { axes: axes.into() }, &[], &[]).expect("two keys");
        let header = header(&space).expect("plain");
        let row = row(0, &["1", "2"].map(Cow::from), Ok(fields())).expect("plain");
        assert_eq!(header.matches(',').count(), row.matches(',').count());
    }

    #[test]
    fn quotes_of_strings_go_and_others_stay() {
        assert_eq!(bare("\"1f1b\""), "1f1b");
        assert_eq!(bare("'a b'"), "a b");
        assert_eq!(bare("[1, 2]"), "[1, 2]");
        assert_eq!(bare("\"a\\\"b\""), "\"a\\\"b\"");
    }
}
