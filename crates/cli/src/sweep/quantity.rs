//! What is drawn and summed up of a point: one number each, with its column, its words, and which end is good.

use pipestep_engine::{Bytes, Duration};
use pipestep_report::{Best, Measure};

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// The length of a step.
    Makespan,
    /// Tokens of a step over its length.
    TokensPerSecond,
    /// Busy time of all ranks over ranks times working time.
    Utilisation,
    /// The highest peak of a rank.
    Peak,
    /// The mean makespan of a step whose lengths are drawn.
    MeanMakespan,
    /// Useful time of a job over its wall time.
    UsefulFraction,
    /// The wall time of a job.
    JobElapsed,
    /// The time of a round of RL.
    RlRound,
    /// Samples trained on, each second.
    RlSamplesPerSecond,
}

impl Quantity {
    /// All, in the order in which they are printed.
    pub(crate) const ALL: [Self; 9] = [
        Self::Makespan,
        Self::TokensPerSecond,
        Self::Utilisation,
        Self::Peak,
        Self::MeanMakespan,
        Self::UsefulFraction,
        Self::JobElapsed,
        Self::RlRound,
        Self::RlSamplesPerSecond,
    ];

    /// Its column.
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::Makespan => "makespan_ns",
            Self::TokensPerSecond => "tokens_per_second",
            Self::Utilisation => "utilisation",
            Self::Peak => "peak_bytes",
            Self::MeanMakespan => "jitter_mean_ns",
            Self::UsefulFraction => "job_useful_fraction",
            Self::JobElapsed => "job_elapsed_ns",
            Self::RlRound => "rl_round_ns",
            Self::RlSamplesPerSecond => "rl_useful_samples_per_s",
        }
    }

    /// What its numbers are.
    pub(crate) const fn measure(self) -> Measure {
        match self {
            Self::Makespan | Self::MeanMakespan | Self::JobElapsed | Self::RlRound => Measure::Time,
            Self::Utilisation | Self::UsefulFraction => Measure::Share,
            Self::Peak => Measure::Bytes,
            Self::TokensPerSecond | Self::RlSamplesPerSecond => Measure::Number,
        }
    }

    /// Which end of it is good.
    pub(crate) const fn best(self) -> Best {
        match self {
            Self::Makespan | Self::Peak | Self::MeanMakespan | Self::JobElapsed | Self::RlRound => {
                Best::Lowest
            }
            _ => Best::Highest,
        }
    }

    /// On the axis of a chart.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Makespan => "makespan",
            Self::TokensPerSecond => "tokens per second",
            Self::Utilisation => "utilisation",
            Self::Peak => "highest peak of a rank",
            Self::MeanMakespan => "mean makespan of the runs",
            Self::UsefulFraction => "useful fraction of the job",
            Self::JobElapsed => "wall time of the job",
            Self::RlRound => "time of a round",
            Self::RlSamplesPerSecond => "useful samples per second",
        }
    }

    /// What the best of it is called.
    pub(crate) const fn superlative(self) -> &'static str {
        match self {
            Self::Makespan => "shortest step",
            Self::TokensPerSecond => "most tokens per second",
            Self::Utilisation => "highest utilisation",
            Self::Peak => "lowest peak",
            Self::MeanMakespan => "shortest mean step",
            Self::UsefulFraction => "highest useful fraction",
            Self::JobElapsed => "shortest job",
            Self::RlRound => "shortest round",
            Self::RlSamplesPerSecond => "most useful samples per second",
        }
    }

    /// The names of its pictures: the chart and the map, as PNG and SVG; none where it is only printed.
    pub(crate) const fn files(self) -> Option<[[&'static str; 2]; 2]> {
        Some(match self {
            Self::Makespan => [["makespan.png", "makespan.svg"], ["makespan-map.png", "makespan-map.svg"]],
            Self::Utilisation => {
                [["utilisation.png", "utilisation.svg"], ["utilisation-map.png", "utilisation-map.svg"]]
            }
            Self::Peak => [["peak.png", "peak.svg"], ["peak-map.png", "peak-map.svg"]],
            Self::MeanMakespan => [["mean.png", "mean.svg"], ["mean-map.png", "mean-map.svg"]],
            Self::UsefulFraction => [["useful.png", "useful.svg"], ["useful-map.png", "useful-map.svg"]],
            Self::JobElapsed => [["job.png", "job.svg"], ["job-map.png", "job-map.svg"]],
            Self::RlRound => [["round.png", "round.svg"], ["round-map.png", "round-map.svg"]],
            Self::RlSamplesPerSecond => {
                [["samples.png", "samples.svg"], ["samples-map.png", "samples-map.svg"]]
            }
            Self::TokensPerSecond => return None,
        })
    }

    /// Whether one value of it is better than another.
    pub(crate) fn is_better(self, one: f64, other: f64) -> bool {
        match self.best() {
            Best::Lowest => one < other,
            Best::Highest => one > other,
        }
    }

    /// A value of it, for a reader.
    pub(crate) fn show(self, value: f64) -> String {
        match self.measure() {
            Measure::Time => Duration::from_nanos(value as u64).to_string(),
            Measure::Bytes => Bytes::new(value as u64).to_string(),
            Measure::Share => format!("{:.1} %", 100.0 * value),
            Measure::Number | Measure::Count => format!("{value:.0}"),
        }
    }
}
