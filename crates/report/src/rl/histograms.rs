//! How long responses were, and how old the weights that samples came from.

use super::bars::{Bars, draw};
use super::{RlView, mean_and_oldest};
use crate::axes::Measure;
use crate::chart::AxisSpec;
use crate::picture::Picture;
use crate::units::{grouped, trimmed};

/// With no more bins than this, each is drawn as high as it is.
const FEW: usize = 2;
/// Ages that the axis has at least, so that a bar stays a bar.
const LEAST_AGES: usize = 6;

/// Response lengths of all samples that ended. The bins of an outcome are not equally wide, so heights are how many
/// lie in a doubling of the length.
pub fn rl_lengths(view: &RlView) -> Picture {
    let outcome = &view.sensitivity.base;
    let bins: Vec<_> = outcome.lengths.bins().collect();
    let is_dense = bins.len() > FEW;
    let height = |from: u64, to: u64, count: u64| {
        if is_dense { count as f64 / ((to as f64 + 1.0) / from.max(1) as f64).log2() } else { count as f64 }
    };
    let bins = bins.iter().map(|&(from, to, count)| (from as f64, to as f64 + 1.0, height(from, to, count)));
    let longest = match trimmed(outcome.tail.ratio, 2) {
        ratio if ratio == "1" => "no longer than the mean".to_owned(),
        ratio => format!("{ratio} times the mean"),
    };
    let ended = grouped(outcome.lengths.total());
    let note = format!("{ended} responses that ended; the longest trained on is {longest}");
    draw(&Bars {
        title: view.name,
        note: &note,
        x: AxisSpec::log("tokens of a response", Measure::Number),
        heights: if is_dense { "responses in a doubling of length" } else { "responses" },
        bins: bins.collect(),
        is_counted: false,
        marks: vec![
            ("mean", outcome.tail.mean_tokens),
            ("longest, mean of rounds", outcome.tail.longest_tokens),
        ],
    })
}

/// How many updates old the weights were that samples came from.
pub fn rl_staleness(view: &RlView) -> Picture {
    let staleness = &view.sensitivity.base.staleness;
    let (mean, oldest) = mean_and_oldest(staleness);
    let bars = (0..LEAST_AGES.max(oldest + 1)).map(|age| {
        let count = staleness.get(age).copied().unwrap_or(0);
        (age as f64 - 0.5, age as f64 + 0.5, count as f64)
    });
    let note = format!(
        "{} samples trained on, {} updates old on average, {oldest} at most",
        grouped(staleness.iter().sum()),
        trimmed(mean, 2)
    );
    draw(&Bars {
        title: view.name,
        note: &note,
        x: AxisSpec::linear("weights at the first token, updates old", Measure::Number),
        heights: "samples",
        bins: bars.collect(),
        is_counted: true,
        marks: vec![("mean", mean)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};
    use crate::rl::testing::RlSample;

    #[test]
    fn lengths_and_staleness_are_laid_out() {
        for (name, sample) in [
            ("small", RlSample::small()),
            ("one step off", RlSample::one_step_off()),
            ("large", RlSample::large()),
            ("async", RlSample::broken()),
        ] {
            check_layout(&rl_lengths(&sample.view()), &format!("{name}: lengths"));
            check_layout(&rl_staleness(&sample.view()), &format!("{name}: staleness"));
        }
    }

    #[test]
    fn lengths_that_are_all_alike_have_an_axis_to_be_read_on() {
        let picture = rl_lengths(&RlSample::small().view());
        let words = words(&picture);
        assert!(words.contains(&"20") && words.contains(&"50"), "{words:?}");
    }

    #[test]
    fn every_age_is_named_by_its_number() {
        let picture = rl_staleness(&RlSample::one_step_off().view());
        let words = words(&picture);
        assert!(words.contains(&"0") && words.contains(&"1"), "{words:?}");
    }
}
