//! The picture of a job: what it was doing when, the writes in the background, commits, failures, and how far
//! each failure threw it back.
//!
//! One panel shows the whole run. Where that is too much to be told apart, its row shows the shares of each
//! column's time, and a second panel shows the stretch round one failure (or the first saves) in full.

use pipestep_engine::{Duration, Time};
use pipestep_job::{CheckpointRecord, CheckpointState, FailureOrigin, FailureRecord, Place};

use super::JobView;
use super::lanes::{Doing, buffered_colour, doings, totals, upload_paint};
use crate::axes::{Axis, draw_x_grid, draw_x_labels};
use crate::chart::draw_title;
use crate::font::text_width;
use crate::lane::{Paint, Segment, Window, draw_lane};
use crate::legend::{Entry, Swatch, entry, legend, note};
use crate::picture::{Across, Picture};
use crate::theme::{ALERT, Colour, INK, LABEL, MARGIN, SMALL, WIDTH};
use crate::units::percent;

/// Points left of the rows for their names.
const NAMES: f64 = 92.0;
/// Points above the rows of a panel: its heading, and the labels of failures.
const HEADING: f64 = 26.0;
const LABEL_ROW: f64 = 15.0;
const LABEL_ROWS: usize = 3;
/// Heights: of the training row, of the lane in which failures point back, of the writer's row.
const TRAINING: f64 = 46.0;
const BACK: f64 = 22.0;
const WRITER: f64 = 30.0;
/// Points below a panel's rows for its axis.
const FOOT: f64 = 50.0;
/// More marks than this in a panel are not drawn one by one.
const MARKS: usize = 300;
/// More failures than this are not labelled or joined with where they lead back to.
const NAMED: usize = 12;
/// The colour of a commit.
const COMMIT: Colour = Colour(0x00, 0x5A, 0x42);

/// Draws the timeline of run 0.
pub fn job_timeline(view: &JobView) -> Picture {
    let whole = doings(view.outcome, (0, view.outcome.elapsed.as_nanos()));
    let windows = windows(view);
    let entries = entries(view, &whole);
    let right = f64::from(WIDTH) - MARGIN;
    let legend_at = (MARGIN, MARGIN + 26.0);
    let head = legend_at.1 + legend(None, legend_at, right, &entries) + 8.0;
    let panels: Vec<Panel> =
        windows.iter().map(|&(window, ref title)| Panel::new(view, window, title)).collect();
    let body: f64 = panels.iter().map(Panel::height).sum();
    let mut picture = Picture::new(WIDTH, (head + body + MARGIN + 4.0).ceil() as u32);
    draw_title(&mut picture, view.name);
    legend(Some(&mut picture), legend_at, right, &entries);
    let (mut top, mut blended) = (head, false);
    for panel in &panels {
        blended |= panel.draw(&mut picture, top);
        top += panel.height();
    }
    if blended {
        let text =
            "where there is too much to be told apart, the height of a colour is its share of the time there";
        note(&mut picture, text, (MARGIN, top + 6.0));
    }
    picture
}

/// The whole run; and where that is crowded, a stretch of it.
fn windows(view: &JobView) -> Vec<(Window, String)> {
    let across = (MARGIN + NAMES, f64::from(WIDTH) - MARGIN - 10.0);
    let end = view.outcome.elapsed.as_nanos().max(1);
    let whole = Window { time: (0, end), across };
    let spans = usize::try_from(view.outcome.timeline.len()).unwrap_or(usize::MAX);
    let crowded = whole.is_crowded(spans) || whole.is_crowded(view.outcome.checkpoints.len());
    let title = if crowded { "the whole run".to_owned() } else { String::new() };
    let mut windows = vec![(whole, title)];
    if crowded && let Some((time, title)) = stretch(view, end) {
        windows.push((Window { time, across }, title));
    }
    windows
}

/// The first failure that threw the job back as far as half of them did or further.
fn typical(failures: &[FailureRecord]) -> Option<usize> {
    let mut lengths: Vec<u64> = failures.iter().map(|failure| failure.redo_wall.as_nanos()).collect();
    let middle = lengths.len() / 2;
    let (_, &mut median, _) = lengths.get_mut(..).filter(|all| !all.is_empty())?.select_nth_unstable(middle);
    failures.iter().position(|failure| failure.redo_wall.as_nanos() >= median)
}

/// Round a typical failure, else the first saves.
fn stretch(view: &JobView, end: u64) -> Option<((u64, u64), String)> {
    let failures = &view.outcome.failures;
    if let Some(index) = typical(failures) {
        let failure = &failures[index];
        let at = failure.at.as_nanos();
        let from = at.saturating_sub(failure.redo_wall.as_nanos().max(1));
        // What repeats has no failure in it.
        let spans = view.outcome.timeline.coarse(view.outcome.elapsed);
        let mut spans = spans.skip_while(|span| span.interval.end <= failure.at);
        let next = spans.find(|span| {
            span.interval.start >= failure.at && span.activity == pipestep_job::Activity::Training
        });
        let resume = next.map_or(end, |span| span.interval.start.as_nanos());
        // As much again after the resume: the lost work is done once more.
        let margin = (resume - from) / 6;
        let to = resume.saturating_add(at - from).saturating_add(margin).min(end);
        return Some(((from.saturating_sub(margin), to), format!("failure {} in full", index + 1)));
    }
    let few = view.outcome.checkpoints.get(4)?;
    let to = few.durable.or(few.staging_end).unwrap_or(few.requested).as_nanos().min(end);
    (to > 0).then(|| ((0, to), "the first saves in full".to_owned()))
}

/// One stretch of the run, drawn as rows on a time axis.
struct Panel<'a> {
    view: &'a JobView<'a>,
    segments: Vec<Segment>,
    window: Window,
    title: &'a str,
    /// Failures in the window, by number.
    failures: Vec<usize>,
    has_writer: bool,
}

impl<'a> Panel<'a> {
    fn new(view: &'a JobView<'a>, window: Window, title: &'a str) -> Self {
        let failures = view.outcome.failures.iter().enumerate();
        let failures = failures.filter(|(_, failure)| window.has(failure.at.as_nanos()));
        Self {
            view,
            segments: doings(view.outcome, window.time),
            window,
            title,
            failures: failures.map(|(index, _)| index).collect(),
            has_writer: view.outcome.saves.is_some(),
        }
    }

    fn is_named(&self) -> bool {
        !self.failures.is_empty() && self.failures.len() <= NAMED
    }

    /// Points from the top of the panel to its rows.
    fn heading(&self) -> f64 {
        let rows = self.failures.len().min(LABEL_ROWS);
        let labels = if self.is_named() { LABEL_ROW * rows as f64 + 4.0 } else { 10.0 };
        labels + if self.title.is_empty() { 0.0 } else { HEADING }
    }

    fn rows(&self) -> f64 {
        let back = if self.is_named() { BACK } else { 8.0 };
        TRAINING + back + if self.has_writer { WRITER } else { 0.0 }
    }

    fn height(&self) -> f64 {
        self.heading() + self.rows() + FOOT
    }

    /// Returns whether anything was blended.
    fn draw(&self, picture: &mut Picture, top: f64) -> bool {
        let (left, right) = self.window.across;
        if !self.title.is_empty() {
            picture.text(self.title, (MARGIN, top + 14.0), LABEL, Across::Left, INK);
        }
        let rows = top + self.heading();
        let corners = [left, rows, right, rows + self.rows()];
        let axis = self.axis();
        draw_x_grid(picture, corners, &axis);
        let paints = Doing::ALL.map(Doing::paint);
        let mut blended = draw_lane(picture, &self.window, &self.segments, &paints, (rows, rows + TRAINING));
        picture.text("training", (left - 9.0, rows + TRAINING / 2.0), LABEL, Across::Right, INK);
        if self.has_writer {
            let upper = corners[3] - WRITER;
            blended |= self.draw_writer(picture, (upper, corners[3]));
            picture.text("writer", (left - 9.0, upper + WRITER / 2.0), LABEL, Across::Right, INK);
        }
        self.draw_failures(picture, corners);
        picture.path(vec![(left, rows), (left, corners[3])], 1.0, INK);
        draw_x_labels(picture, corners, &axis);
        blended
    }

    /// Time since the start of the run, or since the start of the window where that is finer.
    fn axis(&self) -> Axis {
        let (from, to) = self.window.time;
        if from == 0 {
            return Axis::time("time on the clock", 0.0, to as f64);
        }
        let what = format!("time since {} on the clock", self.instant(from));
        Axis::time(&what, 0.0, (to - from) as f64)
    }

    /// An instant in the unit of the axis of the whole run, to a thousandth of what this panel shows.
    fn instant(&self, nanos: u64) -> String {
        let (from, to) = self.window.time;
        let clock = Axis::time("time on the clock", 0.0, self.view.outcome.elapsed.as_nanos() as f64);
        clock.instant(nanos as f64, (to - from) as f64 / 1e3)
    }

    /// Writes as bars, snapshots that wait for the writer as lines before them, commits as marks.
    fn draw_writer(&self, picture: &mut Picture, (top, bottom): (f64, f64)) -> bool {
        let window = &self.window;
        let records = &self.view.outcome.checkpoints;
        let bar = (top + 9.0, bottom - 3.0);
        let writes: Vec<Segment> = records.iter().filter_map(|record| self.write(record)).collect();
        let blended = draw_lane(picture, window, &writes, &[upload_paint()], bar);
        let inside = || records.iter().filter(|record| window.has(mark_of(record).as_nanos()));
        if blended || inside().count() > MARKS {
            return blended;
        }
        for record in inside() {
            if let (Some(staged), Some(start)) = (record.staging_end, record.upload_start) {
                let ends = (window.x(staged.as_nanos()), window.x(start.as_nanos()));
                if ends.1 - ends.0 > 0.5 {
                    let y = bar.0 - 2.0;
                    picture.path(vec![(ends.0, y), (ends.1, y)], 2.5, buffered_colour());
                }
            }
        }
        for record in inside() {
            self.mark(picture, record, (top, bottom));
        }
        blended
    }

    /// The write of a snapshot, as far as it came.
    fn write(&self, record: &CheckpointRecord) -> Option<Segment> {
        let from = record.upload_start?.as_nanos();
        let to = record.upload_end.map_or_else(|| self.next_break(from), Time::as_nanos);
        Some(Segment { from, to, paint: 0 })
    }

    /// The next failure after an instant, or the end of the run.
    fn next_break(&self, from: u64) -> u64 {
        let failures = &self.view.outcome.failures;
        let next = failures.partition_point(|failure| failure.at.as_nanos() <= from);
        let end = self.view.outcome.elapsed.as_nanos();
        failures.get(next).map_or(end, |failure| failure.at.as_nanos())
    }

    /// A flag where a checkpoint became usable, a cross where one was skipped.
    fn mark(&self, picture: &mut Picture, record: &CheckpointRecord, (top, bottom): (f64, f64)) {
        match (record.durable, record.state) {
            (Some(durable), _) if self.window.has(durable.as_nanos()) => {
                let x = self.window.x(durable.as_nanos());
                picture.path(vec![(x, top + 3.0), (x, bottom)], 1.5, COMMIT);
                let (radius, colour) = match record.place {
                    Place::Far => (3.5, COMMIT),
                    Place::Near => (2.5, upload_paint().fill),
                };
                picture.dot((x, top + 3.0), radius, colour);
            }
            (None, CheckpointState::Skipped) => {
                picture.cross((self.window.x(record.requested.as_nanos()), top + 3.0), 3.0, 1.5, INK);
            }
            _ => {}
        }
    }

    fn draw_failures(&self, picture: &mut Picture, corners: [f64; 4]) {
        let [left, top, right, bottom] = corners;
        if !self.is_named() {
            let mut last = f64::NEG_INFINITY;
            for &index in &self.failures {
                let x = self.window.x(self.view.outcome.failures[index].at.as_nanos());
                // What falls on one pixel is one mark.
                if x - last >= 0.5 {
                    let lower = if self.failures.len() > 60 { top } else { bottom };
                    picture.path(vec![(x, top - 7.0), (x, lower)], 1.0, ALERT);
                    last = x;
                }
            }
            return;
        }
        let mut free = [f64::NEG_INFINITY; LABEL_ROWS];
        for &index in &self.failures {
            let x = self.window.x(self.view.outcome.failures[index].at.as_nanos());
            picture.path(vec![(x, top - 5.0), (x, bottom)], 1.5, ALERT);
            self.point_back(picture, index, top + TRAINING + BACK / 2.0);
            let text = self.label(index);
            let width = text_width(&text, SMALL);
            let middle = x.clamp(left + width / 2.0, (right - width / 2.0).max(left + width / 2.0));
            let Some(row) = free.iter().position(|&end| end + 8.0 <= middle - width / 2.0) else { continue };
            free[row] = middle + width / 2.0;
            let y = top - 12.0 - LABEL_ROW * row as f64;
            picture.text(text, (middle, y), SMALL, Across::Middle, ALERT);
        }
    }

    /// What a failure's label says: both meanings of redo, told apart.
    fn label(&self, index: usize) -> String {
        let failure = &self.view.outcome.failures[index];
        let full = self.failures.len() <= 4;
        let axis = self.axis();
        let length = |length: Duration| axis.length(length.as_nanos() as f64);
        let (wall, useful) = (length(failure.redo_wall), length(failure.redo_useful));
        let redo = match (full, failure.redo_wall == failure.redo_useful) {
            (false, _) => String::new(),
            (true, true) => format!(": {wall} to redo"),
            (true, false) => format!(": {wall} back on the clock, {useful} of work to redo"),
        };
        let what = if failure.origin == FailureOrigin::Eviction { "ranks replaced" } else { "failure" };
        format!("{what} at {}{redo}", self.instant(failure.at.as_nanos()))
    }

    /// A dashed line from the failure back to the capture that the job goes on from, if that is in the window.
    fn point_back(&self, picture: &mut Picture, index: usize, y: f64) {
        let failure = &self.view.outcome.failures[index];
        let (from, to) =
            (self.window.x(failure.at.as_nanos()), self.window.x(failure.recovered_to.as_nanos()));
        picture.dashed(&[(from, y), (to, y)], 1.5, ALERT);
        if self.window.has(failure.recovered_to.as_nanos()) {
            let head = 5.0_f64.min((from - to).abs());
            picture.path(vec![(to + head, y - head), (to, y), (to + head, y + head)], 1.5, ALERT);
        }
    }
}

/// The instant at which a request has its mark.
fn mark_of(record: &CheckpointRecord) -> Time {
    record.durable.or(record.capture).unwrap_or(record.requested)
}

/// The legend: only what is there, with its share of the wall time.
fn entries(view: &JobView, segments: &[Segment]) -> Vec<Entry> {
    let totals = totals(segments);
    let elapsed = view.outcome.elapsed.as_nanos().max(1) as f64;
    let mut entries = Vec::new();
    for doing in Doing::ALL {
        let total = totals[doing as usize];
        if total > 0 {
            let name = format!("{} {}", doing.name(), percent(total as f64 / elapsed));
            let Paint { fill, hatch } = doing.paint();
            let swatch = hatch.map_or(Swatch::Block, Swatch::Hatched);
            entries.push(entry(swatch, fill, name));
        }
    }
    let records = &view.outcome.checkpoints;
    let has = |is: &dyn Fn(&CheckpointRecord) -> bool| records.iter().any(is);
    if has(&|record| record.upload_start.is_some()) {
        entries.push(entry(Swatch::Block, upload_paint().fill, "writing"));
    }
    if has(&|record| record.upload_start.is_some() && record.upload_start > record.staging_end) {
        entries.push(entry(Swatch::Line, buffered_colour(), "waits for the writer"));
    }
    let usable = |place| has(&|record| record.durable.is_some() && record.place == place);
    if usable(Place::Far) {
        entries.push(entry(Swatch::Dot, COMMIT, "checkpoint usable"));
    }
    if usable(Place::Near) {
        entries.push(entry(Swatch::Dot, upload_paint().fill, "near checkpoint usable"));
    }
    if has(&|record| record.state == CheckpointState::Skipped) {
        entries.push(entry(Swatch::Cross, INK, "save skipped"));
    }
    let failures = &view.outcome.failures;
    if !failures.is_empty() {
        let all_replaced = failures.iter().all(|failure| failure.origin == FailureOrigin::Eviction);
        entries.push(entry(Swatch::Line, ALERT, if all_replaced { "ranks replaced" } else { "failure" }));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::{JobSample, seconds};
    use crate::layout_tests::{check_layout, words};
    use pipestep_job::{Backlog, JobInputs, Mode, Spread, Write};

    #[test]
    fn any_length_is_laid_out_and_bounded() {
        for (name, sample) in [
            ("nothing", JobSample::of(JobInputs::of_work(seconds(1)), 1)),
            ("seed", JobSample::seed(7, &[50])),
            ("two failures at once", JobSample::seed(20, &[50, 51, 90])),
            ("weeks", JobSample::weeks(1)),
        ] {
            let picture = job_timeline(&sample.view());
            check_layout(&picture, name);
            assert!(picture.shapes().len() < 20_000, "{name}: {} shapes", picture.shapes().len());
            assert!(picture.to_png().is_ok());
        }
    }

    #[test]
    fn the_two_meanings_of_redo_are_told_apart() {
        let sample = JobSample::seed(7, &[50]);
        let picture = job_timeline(&sample.view());
        let words = words(&picture);
        let label = "failure at 50 s: 30 s back on the clock, 29 s of work to redo";
        assert!(words.contains(&label), "{words:?}");
        assert!(words.iter().any(|word| word.starts_with("training, work lost")), "{words:?}");
    }

    #[test]
    fn labels_are_in_the_unit_of_their_axis() {
        // Failures after minutes and after more than an hour, on an axis in minutes.
        let sample = JobSample::seed(20, &[90, 4_000]);
        let mut inputs = sample.inputs;
        inputs.work = Some(seconds(6_000));
        let picture = job_timeline(&JobSample::of(inputs, 1).view());
        let words = words(&picture);
        assert!(words.iter().any(|word| word.ends_with("[min]")), "{words:?}");
        for start in ["failure at 1.5 min: ", "failure at 66.7 min: "] {
            assert!(words.iter().any(|word| word.starts_with(start)), "{start}: {words:?}");
        }
    }

    #[test]
    fn a_long_job_shows_one_failure_in_full() {
        let sample = JobSample::weeks(1);
        let picture = job_timeline(&sample.view());
        let words = words(&picture);
        assert!(words.contains(&"the whole run"), "{words:?}");
        assert!(words.iter().any(|word| word.ends_with("in full")), "{words:?}");
    }

    #[test]
    fn skipped_saves_have_their_mark() {
        let mut sample = JobSample::seed(7, &[]);
        let checkpoint = sample.inputs.checkpoint.as_mut().expect("the seed's job saves");
        checkpoint.mode =
            Mode::Async { staging: seconds(1), backlog: Backlog::Skip { buffers: 1 }, buffer: None };
        checkpoint.write = Write::Time(Spread::Fixed(seconds(70)));
        sample.inputs.work = Some(seconds(300));
        let sample = JobSample::of(sample.inputs, 1);
        let picture = job_timeline(&sample.view());
        check_layout(&picture, "skip");
        assert!(words(&picture).contains(&"save skipped"));
    }
}
