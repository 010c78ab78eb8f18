//! How the runs of a random job differ: when they end, and what each cause costs them.

use pipestep_job::{Estimate, RunsSummary};

use super::JobView;
use super::text_tables::meaning;
use crate::axes::{Axis, Frame, Measure, Scale, draw_x_grid, draw_x_labels};
use crate::chart::{AxisSpec, chart_note, draw_title};
use crate::font::{shortened, text_width};
use crate::histogram::{Histogram, histogram};
use crate::legend::note;
use crate::picture::{Across, Picture};
use crate::theme::{FAINT_INK, INK, LABEL, MARGIN, PAPER, SMALL, WIDTH, of_line};
use crate::units::{counted, percent};

const ROW: f64 = 40.0;
const NAMES: f64 = 118.0;
const FOOT: f64 = 50.0;
/// The least width of a box.
const NARROW: f64 = 3.0;

/// The distribution of the wall time over the runs; of the useful fraction where a horizon ends them all. `None`
/// for a single run.
pub fn job_completion(view: &JobView) -> Option<Picture> {
    let summary = view.summary()?;
    let (what, measure, estimate, samples) = if view.finishes() {
        let samples = view.runs.iter().map(|run| run.elapsed.as_nanos() as f64).collect();
        ("wall time until the work is done", Measure::Time, &summary.elapsed, samples)
    } else {
        let samples = view.runs.iter().map(pipestep_job::JobOutcome::useful_fraction).collect();
        ("useful time over wall time", Measure::Share, &summary.useful_fraction, samples)
    };
    Some(histogram(&Histogram {
        title: view.name.to_owned(),
        x: AxisSpec::linear(what, measure),
        samples,
        marks: Histogram::marks_of(estimate),
    }))
}

/// A row for each cause of loss: the middle half of the runs as a box, nine in ten as a line, all as dots at the
/// ends. `None` for a single run.
pub fn job_losses(view: &JobView) -> Option<Picture> {
    let summary = view.summary()?;
    let rows = rows(&summary);
    let highest = rows.iter().map(|(_, estimate)| estimate.max).fold(1.0, f64::max);
    let lowest = rows.iter().map(|(_, estimate)| estimate.min).fold(0.0, f64::min);
    let head = MARGIN + 48.0;
    let body = ROW * rows.len().max(1) as f64;
    let mut picture = Picture::new(WIDTH, (head + body + FOOT + 26.0).ceil() as u32);
    let right = f64::from(WIDTH) - MARGIN;
    draw_title(&mut picture, view.name);
    chart_note(&mut picture, &format!("Time lost by cause, over {}", counted(summary.runs as u64, "run")));
    let axis = Axis::new("time lost", Measure::Time, Scale::Linear, (lowest, highest * 1.03));
    let corners = [MARGIN + NAMES, head, right - 8.0, head + body];
    draw_x_grid(&mut picture, corners, &axis);
    let y = Axis::new("", Measure::Number, Scale::Linear, (0.0, 1.0));
    let frame = Frame { corners, x: axis.clone(), y };
    for (place, &(name, estimate)) in rows.iter().enumerate() {
        let middle = head + ROW * (place as f64 + 0.5);
        draw_row(&mut picture, &frame, middle, name, estimate, &summary);
    }
    draw_x_labels(&mut picture, corners, &axis);
    let text =
        "box: the middle half of the runs, its line the median; line: nine runs in ten; dots: the extremes";
    note(&mut picture, text, (MARGIN, head + body + FOOT + 8.0));
    Some(picture)
}

/// Causes that cost any run anything, the dearest first.
fn rows(summary: &RunsSummary) -> Vec<(&'static str, &Estimate)> {
    let lost = summary.lost.iter().map(|(name, estimate)| (*name, estimate));
    let mut rows: Vec<_> = lost.filter(|(_, estimate)| estimate.min != 0.0 || estimate.max != 0.0).collect();
    rows.sort_by(|one, other| other.1.mean.total_cmp(&one.1.mean));
    rows
}

fn draw_row(
    picture: &mut Picture,
    frame: &Frame,
    middle: f64,
    name: &'static str,
    estimate: &Estimate,
    summary: &RunsSummary,
) {
    let [left, _, right, _] = frame.corners;
    let x = |nanos: f64| frame.at(nanos, 0.0).0;
    let colour = of_line(0, 1);
    let [_, p5, p25, p50, p75, p95, _] = estimate.percentiles;
    picture.text(name.replace('_', " "), (left - 10.0, middle), LABEL, Across::Right, INK);
    let (upper, lower) = (middle - 2.0, middle + 14.0);
    let centre = f64::midpoint(upper, lower);
    picture.path(vec![(x(p5), centre), (x(p95), centre)], 1.5, INK);
    picture.dot((x(estimate.min), centre), 2.0, INK);
    picture.dot((x(estimate.max), centre), 2.0, INK);
    // A box that is too narrow to be seen is drawn as wide as one that can, without room for the median in it.
    let (from, to) = (x(p25).min(x(p50) - NARROW / 2.0), x(p75).max(x(p50) + NARROW / 2.0));
    picture.fill([from, upper, to, lower], colour);
    if x(p75) - x(p25) > 2.0 * NARROW {
        picture.path(vec![(x(p50), upper), (x(p50), lower)], 2.0, PAPER);
    }
    let share = estimate.mean / summary.elapsed.mean.max(1.0);
    let label = format!(
        "mean {}, {} of the wall time: {}",
        frame.x.length(estimate.mean),
        percent(share),
        meaning(name)
    );
    let label = shortened(&label, SMALL, right - left);
    let width = text_width(&label, SMALL);
    let start = x(p25).min(right - width).max(left);
    picture.text(label, (start, middle - 11.0), SMALL, Across::Left, FAINT_INK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::JobSample;
    use crate::layout_tests::{check_layout, words};

    #[test]
    fn random_runs_have_their_distributions_and_single_ones_none() {
        let single = JobSample::weeks(1);
        assert!(job_completion(&single.view()).is_none() && job_losses(&single.view()).is_none());
        let sample = JobSample::weeks(12);
        let completion = job_completion(&sample.view()).expect("several runs");
        check_layout(&completion, "completion");
        let losses = job_losses(&sample.view()).expect("several runs");
        check_layout(&losses, "losses");
        let words = words(&losses);
        for cause in ["save stall", "redo", "downtime", "recovery"] {
            assert!(words.contains(&cause), "{cause}: {words:?}");
        }
    }
}
