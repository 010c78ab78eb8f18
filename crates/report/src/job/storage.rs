//! The picture of what a job's saves need and give: bytes in buffers, bytes not yet written, how old the newest
//! usable checkpoint is, and how full the buffer of the input, all on one time axis.

use pipestep_engine::{Bytes, Time};
use pipestep_job::{CheckpointRecord, Mode, Place};

use super::JobView;
use crate::axes::{Axis, Frame, Measure, Scale};
use crate::chart::draw_title;
use crate::coincide::{Strand, draw_strands};
use crate::curve::{Curve, draw_bands, stairs};
use crate::font::shortened;
use crate::legend::{Entry, Swatch, entry, legend, note};
use crate::picture::{Across, Picture};
use crate::theme::{ALERT, BLUE, Colour, FAINT_INK, GREEN, INK, LABEL, MARGIN, VERMILION, VIOLET, WIDTH};
use crate::units::{bytes_short, counted, grouped};

/// Points above a plot for its heading and its legend, and below it for its axis.
const HEADING: f64 = 50.0;
const FOOT: f64 = 50.0;
const PLOT: f64 = 200.0;
/// Points left of a plot for its axis.
const AXIS: f64 = 68.0;
/// More failures than these are marked at the top only, and not at all.
const FAILURES: (usize, usize) = (30, 500);
/// What is to be known of bands, and of curves that coincide.
const NOTES: [&str; 2] = [
    "bands, side by side where there are two, go from the lowest to the highest value at about that time, the line in them is the mean",
    "striped: curves that coincide",
];
const HELD: Colour = BLUE;
const UNWRITTEN: Colour = VERMILION;
const AGE: Colour = GREEN;
const INPUT: Colour = VIOLET;

/// Draws the buffers (where a snapshot lies in one) and the age of the newest usable checkpoint of run 0.
pub fn job_storage(view: &JobView) -> Picture {
    let panels: Vec<Plot> = [buffers(view), Some(age(view)), input(view)].into_iter().flatten().collect();
    let head = MARGIN + 26.0;
    let each = HEADING + PLOT + FOOT;
    let mut picture = Picture::new(WIDTH, (head + each * panels.len() as f64 + 18.0).ceil() as u32);
    let right = f64::from(WIDTH) - MARGIN;
    draw_title(&mut picture, view.name);
    let mut drawn = [false; 2];
    for (index, plot) in panels.iter().enumerate() {
        let top = head + each * index as f64;
        let corners = [MARGIN + AXIS, top + HEADING, right - 8.0, top + HEADING + PLOT];
        for (known, now) in drawn.iter_mut().zip(plot.draw(&mut picture, view, top, corners)) {
            *known |= now;
        }
    }
    let words = drawn.into_iter().zip(NOTES).filter(|(is_drawn, _)| *is_drawn).map(|(_, words)| words);
    let text = words.collect::<Vec<_>>().join("; ");
    note(&mut picture, &text, (MARGIN, head + each * panels.len() as f64 + 4.0));
    picture
}

/// One plot over the time of the run.
struct Plot {
    heading: String,
    y: Axis,
    /// Curves with their colour, the last on top.
    curves: Vec<(Vec<(f64, f64)>, Colour)>,
    /// A curve that was kept in stretches: from, to, lowest, highest, mean.
    stretches: Vec<[f64; 5]>,
    /// A level that must not be exceeded.
    limit: Option<f64>,
    entries: Vec<Entry>,
}

impl Plot {
    /// Returns whether a curve became a band, and whether some curves coincide.
    fn draw(&self, picture: &mut Picture, view: &JobView, top: f64, corners: [f64; 4]) -> [bool; 2] {
        let [left, upper, right, lower] = corners;
        let heading = shortened(&self.heading, LABEL, right - MARGIN);
        picture.text(heading, (MARGIN, top + 12.0), LABEL, Across::Left, INK);
        legend(Some(picture), (MARGIN, top + 22.0), right, &self.entries);
        let end = view.outcome.elapsed.as_nanos().max(1) as f64;
        let x = Axis::time("time on the clock", 0.0, end);
        let frame = Frame { corners, x, y: self.y.clone() };
        frame.draw(picture);
        let curves = self.curves.iter().map(|(points, colour)| Curve::new(&frame, points, *colour));
        let stretches =
            (!self.stretches.is_empty()).then(|| Curve::of_stretches(&frame, &self.stretches, INPUT));
        let curves: Vec<Curve> = curves.chain(stretches).collect();
        let has_bands = curves.iter().any(Curve::is_band);
        draw_bands(picture, &curves);
        let failures = &view.outcome.failures;
        if failures.len() <= FAILURES.1 {
            let lower = if failures.len() <= FAILURES.0 { lower } else { upper + 8.0 };
            for failure in failures {
                let x = frame.at(failure.at.as_nanos() as f64, 0.0).0;
                picture.path(vec![(x, upper), (x, lower)], 0.75, ALERT);
            }
        }
        let strands: Vec<Strand> = curves.into_iter().rev().map(Curve::into_strand).collect();
        let some_coincide = draw_strands(picture, &strands, 2.0);
        if let Some(limit) = self.limit {
            let y = frame.at(0.0, limit).1;
            picture.dashed(&[(left, y), (right, y)], 1.5, INK);
        }
        [has_bands, some_coincide]
    }
}

/// Bytes in buffers (each held from the capture to the end of its write) and bytes not yet written; `None` if
/// nothing was ever in a buffer.
fn buffers(view: &JobView) -> Option<Plot> {
    let outcome = view.outcome;
    let checkpoint = view.inputs.checkpoint.as_ref()?;
    let Mode::Async { backlog, .. } = checkpoint.mode else {
        return None;
    };
    let size = checkpoint.size?;
    let peak = outcome.saves?.peak_bytes?.get() as f64;
    let end = outcome.elapsed.as_nanos() as f64;
    let levels = outcome.backlog_curve.iter();
    let held = stairs(levels.map(|level| (level.at.as_nanos() as f64, level.accounts[0].get() as f64)), end);
    let limit = backlog.buffers().map(|count| f64::from(count) * size.get() as f64);
    let shown = limit.filter(|&limit| limit <= 3.0 * peak);
    let top = shown.map_or(peak, |limit| limit.max(peak)).max(1.0) * 1.1;
    let mut entries = vec![
        entry(Swatch::Line, HELD, "in buffers, from capture to the end of the write"),
        entry(Swatch::Line, UNWRITTEN, "not yet written"),
    ];
    if let (Some(_), Some(count)) = (shown, backlog.buffers()) {
        entries.push(entry(Swatch::Dashes, INK, counted(count.into(), "buffer")));
    }
    entries.extend(failure_entry(view));
    Some(Plot {
        heading: format!("Snapshots of {} waiting for the writer", bytes_short(size)),
        y: Axis::bytes("bytes", 0.0, top),
        curves: vec![(held, HELD), (unwritten(view, size), UNWRITTEN)],
        stretches: Vec::new(),
        limit: shown,
        entries,
    })
}

/// The sum over all snapshots of what is left to write: all of one from its capture, falling evenly during its
/// write, nothing of those that a failure destroyed.
fn unwritten(view: &JobView, size: Bytes) -> Vec<(f64, f64)> {
    let size = size.get() as f64;
    let end = view.outcome.elapsed.as_nanos();
    // Changes of the sum and of its slope, by time.
    let mut changes: Vec<(u64, f64, f64)> = Vec::new();
    for record in view.outcome.checkpoints.iter().filter(|record| record.place == Place::Far) {
        let Some(capture) = record.capture else { continue };
        changes.push((capture.as_nanos(), size, 0.0));
        let lost_at = next_break(view, record, capture);
        match (record.upload_start, record.upload_end) {
            (Some(start), Some(end)) => {
                let slope = size / end.since(start).as_nanos().max(1) as f64;
                changes.push((start.as_nanos(), 0.0, -slope));
                changes.push((end.as_nanos(), 0.0, slope));
            }
            (Some(start), None) => {
                let so_far = lost_at.unwrap_or(end).saturating_sub(start.as_nanos()) as f64;
                let slope = size / mean_write(view).unwrap_or(so_far).max(1.0);
                changes.push((start.as_nanos(), 0.0, -slope));
                changes.extend(lost_at.map(|at| (at, (slope * so_far).min(size) - size, slope)));
            }
            (None, _) => changes.extend(lost_at.map(|at| (at, -size, 0.0))),
        }
    }
    changes.sort_by_key(|&(at, ..)| at);
    let (mut sum, mut slope, mut last) = (0.0_f64, 0.0, 0);
    let mut points = vec![(0.0, 0.0)];
    for (at, step, steeper) in changes {
        sum += slope * (at - last) as f64;
        points.push((at as f64, sum.max(0.0)));
        sum += step;
        slope += steeper;
        points.push((at as f64, sum.max(0.0)));
        last = at;
    }
    points.push((end as f64, (sum + slope * end.saturating_sub(last) as f64).max(0.0)));
    points
}

/// When a snapshot that was never written whole was lost: at the failure after it; `None` if the run ended first.
fn next_break(view: &JobView, record: &CheckpointRecord, capture: Time) -> Option<u64> {
    let failures = &view.outcome.failures;
    let from = record.upload_start.unwrap_or(capture);
    let next = failures.partition_point(|failure| failure.at < from);
    failures.get(next).map(|failure| failure.at.as_nanos())
}

/// How long a whole write takes in ns, by those that ended.
fn mean_write(view: &JobView) -> Option<f64> {
    let ended = view.outcome.checkpoints.iter();
    let ended =
        ended.filter_map(|record| Some(record.upload_end?.since(record.upload_start?).as_nanos() as f64));
    let (count, sum) = ended.fold((0.0, 0.0), |(count, sum), length| (count + 1.0, sum + length));
    (count > 0.0).then(|| sum / count)
}

/// The time since the capture that a failure would go back to: the work at risk, on the clock.
fn age(view: &JobView) -> Plot {
    let end = view.outcome.elapsed.as_nanos();
    let mut points = vec![(0.0, 0.0)];
    let mut capture = 0;
    for newest in &view.outcome.newest_curve {
        let at = newest.at.as_nanos();
        points.push((at as f64, at.saturating_sub(capture) as f64));
        capture = newest.capture.as_nanos();
        points.push((at as f64, at.saturating_sub(capture) as f64));
    }
    points.push((end as f64, end.saturating_sub(capture) as f64));
    let highest = points.iter().map(|point| point.1).fold(1.0, f64::max);
    Plot {
        heading: "Age of the newest usable checkpoint: what a failure at that instant would throw back"
            .into(),
        y: Axis::new("age", Measure::Time, Scale::Linear, (0.0, highest * 1.08)),
        curves: vec![(points, AGE)],
        stretches: Vec::new(),
        limit: None,
        entries: [entry(Swatch::Line, AGE, "time since its capture")]
            .into_iter()
            .chain(failure_entry(view))
            .collect(),
    }
}

/// Items that wait for their step; `None` for a job whose input is always there.
fn input(view: &JobView) -> Option<Plot> {
    let levels = &view.outcome.buffer_curve;
    let input = view.inputs.input.as_ref().filter(|_| !levels.is_empty())?;
    let stretches = levels.iter().map(|level| {
        let (from, to) = (level.from.as_nanos() as f64, level.to.as_nanos() as f64);
        [from, to, level.low as f64, level.high as f64, level.mean]
    });
    let highest = levels.iter().map(|level| level.high).max().unwrap_or(0) as f64;
    let prefetch = f64::from(input.prefetch);
    let shown = (prefetch <= 3.0 * highest).then_some(prefetch);
    let mut entries = vec![entry(Swatch::Line, INPUT, "made, and not yet taken by a step")];
    if shown.is_some() {
        entries.push(entry(
            Swatch::Dashes,
            INK,
            format!("prefetch: {} items", grouped(input.prefetch.into())),
        ));
    }
    entries.extend(failure_entry(view));
    let top = shown.map_or(highest, |limit| limit.max(highest)).max(1.0) * 1.1;
    Some(Plot {
        heading: format!(
            "Items in the input buffer, of which a step takes {}; {} of {} steps waited",
            grouped(input.items_per_step.into()),
            grouped(view.outcome.input.map_or(0, |totals| totals.steps_waited)),
            grouped(view.outcome.input.map_or(0, |totals| totals.steps))
        ),
        y: Axis::new("items", Measure::Number, Scale::Linear, (0.0, top)),
        curves: Vec::new(),
        stretches: stretches.collect(),
        limit: shown,
        entries,
    })
}

fn failure_entry(view: &JobView) -> Option<Entry> {
    match view.outcome.failures.len() {
        0 => None,
        count if count <= FAILURES.1 => Some(entry(Swatch::Line, ALERT, "failure")),
        count => Some(entry(Swatch::Line, FAINT_INK, format!("{count} failures, not drawn"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::{JobSample, seconds};
    use crate::layout_tests::{check_layout, words};
    use pipestep_job::JobInputs;

    #[test]
    fn any_length_is_laid_out_and_bounded() {
        for (name, sample) in [
            ("nothing", JobSample::of(JobInputs::of_work(seconds(1)), 1)),
            ("seed", JobSample::seed(7, &[50])),
            ("weeks", JobSample::weeks(1)),
        ] {
            let picture = job_storage(&sample.view());
            check_layout(&picture, name);
            assert!(picture.shapes().len() < 5_000, "{name}: {} shapes", picture.shapes().len());
        }
    }

    #[test]
    fn what_is_not_yet_written_never_exceeds_the_buffers() {
        let sample = JobSample::seed(7, &[45]);
        let view = sample.view();
        let plot = buffers(&view).expect("the seed's job has buffers");
        let at = |curve: usize, when: f64| {
            let points = &plot.curves[curve].0;
            let after = points.partition_point(|point| point.0 <= when).max(1);
            let (before, next) = (points[after - 1], points.get(after).copied().unwrap_or(points[after - 1]));
            let share = if next.0 > before.0 { (when - before.0) / (next.0 - before.0) } else { 0.0 };
            before.1 + share * (next.1 - before.1)
        };
        for second in 0..100 {
            let when = f64::from(second) * 1e9 + 7e8;
            assert!(at(1, when) <= at(0, when) + 1.0, "{second}: {} {}", at(1, when), at(0, when));
        }
        // Half of the first write, which runs from 20.5 to 36.5 s, has been done at 28.5 s.
        assert!((at(1, 28.5e9) - 56e9).abs() < 1e3, "{}", at(1, 28.5e9));
    }

    #[test]
    fn the_limit_of_the_buffers_is_named() {
        let sample = JobSample::seed(7, &[]);
        let picture = job_storage(&sample.view());
        assert!(words(&picture).contains(&"2 buffers"), "{:?}", words(&picture));
    }
}
