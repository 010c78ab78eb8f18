//! How often values occur: the makespan of many jittered runs, the end of many jobs.

use pipestep_job::Estimate;

use crate::axes::{Axis, Frame, Measure};
use crate::chart::{AxisSpec, SIZE, chart, chart_note};
use crate::font::text_width;
use crate::picture::{Across, Picture};
use crate::theme::{INK, SMALL, of_line};
use crate::units::counted;

/// Bars at most.
const MOST_BARS: usize = 80;
/// Rows above the plot for the names of marks.
const MARK_ROWS: usize = 3;
const MARK_ROW: f64 = 15.0;

/// Samples of one value, with marks at some of its levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The title.
    pub title: String,
    /// What the value is, and its numbers.
    pub x: AxisSpec,
    /// The samples, in any order. Those that are not finite are left out.
    pub samples: Vec<f64>,
    /// Levels to mark: `mean`, `p50`, `p99`.
    pub marks: Vec<(String, f64)>,
}

impl Histogram {
    /// The marks that say most about samples: the mean, the median, and between which nine in ten lie.
    pub(crate) fn marks_of(estimate: &Estimate) -> Vec<(String, f64)> {
        let [_, p5, _, p50, _, p95, _] = estimate.percentiles;
        let marks = [("p5", p5), ("median", p50), ("p95", p95), ("mean", estimate.mean)];
        marks.map(|(name, at)| (name.to_owned(), at)).to_vec()
    }
}

/// Draws the histogram. The number of bars follows Freedman and Diaconis (1981): twice the middle half's width
/// over the cube root of the number of samples.
pub fn histogram(spec: &Histogram) -> Picture {
    let mut samples: Vec<f64> = spec.samples.iter().copied().filter(|sample| sample.is_finite()).collect();
    samples.sort_by(f64::total_cmp);
    let (low, high) = (samples.first().copied().unwrap_or(0.0), samples.last().copied().unwrap_or(1.0));
    let counts = count(&samples, low, high);
    let tallest = counts.iter().copied().max().unwrap_or(0).max(1);
    let x = Axis::new(&spec.x.what, spec.x.measure, spec.x.scale, (low, high));
    let y = AxisSpec::linear("samples", Measure::Number).over([0.0, tallest as f64].into_iter(), 0.04);
    let (mut picture, mut frame) = chart(&spec.title, x, y, 24.0);
    chart_note(&mut picture, &counted(samples.len() as u64, "sample"));
    let width = (frame.x.ends.1 - frame.x.ends.0) / counts.len().max(1) as f64;
    for (index, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let from = frame.x.ends.0 + width * index as f64;
        draw_bar(&mut picture, &frame, (from, from + width), count as f64);
    }
    draw_marks(&mut picture, &mut frame, &spec.marks);
    picture
}

/// A bar between two values, with a hair of paper before the next where there is room for it.
pub(crate) fn draw_bar(picture: &mut Picture, frame: &Frame, (from, to): (f64, f64), height: f64) {
    let (left, top) = frame.at(from, height);
    let (right, bottom) = frame.at(to, 0.0);
    let hair = if right - left > 4.0 { 0.5 } else { 0.0 };
    picture.fill([left, top, right - hair, bottom], of_line(0, 1));
}

/// Samples in each of the bars between the lowest and the highest.
fn count(sorted: &[f64], low: f64, high: f64) -> Vec<usize> {
    if sorted.is_empty() {
        return Vec::new();
    }
    let quarter = |part: usize| sorted[(sorted.len() - 1) * part / 4];
    let width = 2.0 * (quarter(3) - quarter(1)) / (sorted.len() as f64).cbrt();
    let bars = if width > 0.0 { ((high - low) / width).ceil() } else { 1.0 };
    let bars = (bars.max(1.0) as usize).clamp(1, MOST_BARS);
    let mut counts = vec![0; bars];
    for sample in sorted {
        let place = if high > low { (sample - low) / (high - low) } else { 0.0 };
        counts[((place * bars as f64) as usize).min(bars - 1)] += 1;
    }
    counts
}

/// Lines through the plot, named above it, each name in the first row where it covers no other.
fn draw_marks(picture: &mut Picture, frame: &mut Frame, marks: &[(String, f64)]) {
    let [left, top, right, bottom] = frame.corners;
    let mut free = [f64::NEG_INFINITY; MARK_ROWS];
    let mut marks: Vec<_> =
        marks.iter().filter(|(_, at)| (0.0..=1.0).contains(&frame.x.place(*at))).collect();
    marks.sort_by(|a, b| a.1.total_cmp(&b.1));
    for (name, at) in marks {
        let x = frame.at(*at, 0.0).0;
        picture.dashed(&[(x, top), (x, bottom)], 1.0, INK);
        let label = format!("{name} {}", frame.x.label(*at));
        let width = text_width(&label, SMALL);
        let middle = x.clamp(left + width / 2.0, right.max(left + width) - width / 2.0);
        let Some(row) = free.iter().position(|&end| end + 6.0 <= middle - width / 2.0) else { continue };
        free[row] = middle + width / 2.0;
        let y = top - 8.0 - MARK_ROW * row as f64;
        let clear_of_note = y > 60.0 || middle - width / 2.0 > f64::from(SIZE.0) / 4.0;
        if clear_of_note {
            picture.text(label, (middle, y), SMALL, Across::Middle, INK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};

    fn spread(count: u32) -> Histogram {
        // A sum of two waves: two humps, no randomness needed.
        let sample = |i: u32| 347e6 + f64::from(i % 97) * 1e5 + f64::from(i % 89) * 1e5;
        Histogram {
            title: "Makespan of jittered runs".into(),
            x: AxisSpec::linear("makespan", Measure::Time),
            samples: (0..count).map(sample).collect(),
            marks: vec![
                ("mean".into(), 356e6),
                ("p50".into(), 356.1e6),
                ("p99".into(), 364e6),
                ("p1".into(), 347.2e6),
            ],
        }
    }

    #[test]
    fn any_number_of_samples_is_laid_out() {
        for count in [0, 1, 2, 1_000, 50_000] {
            check_layout(&histogram(&spread(count)), &format!("{count} samples"));
        }
    }

    #[test]
    fn every_sample_is_counted_once() {
        let mut samples = spread(10_000).samples;
        samples.sort_by(f64::total_cmp);
        let counts = count(&samples, samples[0], samples[9_999]);
        assert_eq!(counts.iter().sum::<usize>(), 10_000);
        assert!((10..=MOST_BARS).contains(&counts.len()), "{}", counts.len());
    }

    #[test]
    fn marks_that_lie_close_are_both_named() {
        let picture = histogram(&spread(1_000));
        let words = words(&picture);
        assert!(words.contains(&"mean 356") && words.contains(&"p50 356.1"), "{words:?}");
    }
}
