//! The Gantt picture: a row per rank, one panel per step, all on one time axis.
//!
//! Forwards blue, backwards orange, split backwards in two further tones, updates green, idle time white; later
//! chunks lighter; messages as thin marks at the row of their sender (gradients above it, activations below);
//! the makespan marked. Rows become thinner and numbers are dropped as a step grows; nothing is cut off.

use pipestep_engine::Time;
use pipestep_schedule::Rank;
use pipestep_step::Record;

use crate::axes::{Axis, draw_x_grid, draw_x_labels};
use crate::chart::draw_title;
use crate::font::{shortened, text_width};
use crate::legend::{Entry, Swatch, entry, legend, note};
use crate::picture::{Across, Picture};
use crate::rows::{LANES_FROM, RowStyle};
use crate::theme::{
    ALERT, FAINT_INK, INK, LABEL, MARGIN, SETUP, SMALL, WIDTH, mixed, name_of, of_chunk, of_kind,
};
use crate::units::{percent, time_exact};
use crate::{Event, EventKind, StepView, events};

/// Heights in points: of a row at most, of a row at least, of all rows together where they have to share.
const ROW: (f64, f64) = (36.0, 3.0);
const ROWS_TOGETHER: f64 = 900.0;
/// Rows of one panel, and of all panels; with more ranks every k-th is shown.
const ROWS_DRAWN: (usize, usize) = (256, 2_000);
/// Points above a panel for its heading and its makespan's label.
const HEADING: f64 = 52.0;
/// Points below the last panel, for the axis.
const FOOT: f64 = 46.0;

/// One step to draw.
pub type GanttPanel<'a> = (StepView<'a>, &'a Record);

/// A panel with everything that is measured before drawing.
struct Laid<'a> {
    view: StepView<'a>,
    /// The events of each rank that is drawn.
    rows: Vec<Vec<Event>>,
    /// One rank in so many is drawn.
    step: usize,
    style: RowStyle,
    blended: bool,
}

/// Draws one step, or several below each other on the same time axis.
pub fn gantt(panels: &[GanttPanel]) -> Picture {
    draw(panels, &[])
}

/// Draws one step with a path through it, such as its critical path: the operations on it are framed, its messages
/// are lines from the sender's row to the receiver's.
pub fn gantt_with_path(panel: GanttPanel, path: &[Event]) -> Picture {
    draw(&[panel], path)
}

fn draw(panels: &[GanttPanel], path: &[Event]) -> Picture {
    let axis = Axis::time("time", 0.0, panels.iter().map(makespan).fold(1.0, f64::max) * 1.005);
    let laid = lay_all(panels, &axis);
    let mut entries = entries(&laid);
    entries.extend((!path.is_empty()).then(|| entry(Swatch::Line, ALERT, "critical path")));
    let legend_at = (MARGIN, MARGIN + 26.0);
    let right = f64::from(WIDTH) - MARGIN;
    let head = legend_at.1 + legend(None, legend_at, right, &entries) + 6.0;
    let body: f64 = laid.iter().map(|panel| HEADING + panel.height()).sum();
    let mut picture = Picture::new(WIDTH, (head + body + FOOT + MARGIN).ceil() as u32);
    let title = panels.first().map_or("", |(view, _)| view.labels.name.as_str());
    draw_title(&mut picture, title);
    legend(Some(&mut picture), legend_at, right, &entries);
    let mut top = head;
    for (index, panel) in laid.iter().enumerate() {
        draw_panel(&mut picture, panel, &axis, top, index + 1 == laid.len());
        draw_path(&mut picture, panel, top + HEADING, path);
        top += HEADING + panel.height();
    }
    note(&mut picture, &notes(&laid), (MARGIN, head + body + FOOT + 4.0));
    picture
}

fn makespan((view, _): &GanttPanel) -> f64 {
    view.summary.makespan.as_nanos() as f64
}

/// Measures all panels: rows are as high as the panels together allow.
fn lay_all<'a>(panels: &[GanttPanel<'a>], axis: &Axis) -> Vec<Laid<'a>> {
    let rows_each = ROWS_DRAWN.0.min(ROWS_DRAWN.1 / panels.len().max(1)).max(1);
    let step = |view: &StepView| view.shape.ranks().div_ceil(rows_each);
    let rows: usize = panels.iter().map(|(view, _)| view.shape.ranks().div_ceil(step(view))).sum();
    let height = (ROWS_TOGETHER / rows.max(1) as f64).clamp(ROW.1, ROW.0);
    let most_ranks = panels.iter().map(|(view, _)| view.shape.ranks()).max().unwrap_or(1);
    let left = MARGIN + text_width(&format!("rank {}", most_ranks - 1), LABEL) + 10.0;
    let across = (left, f64::from(WIDTH) - MARGIN - 8.0);
    let lay = |&(view, record): &GanttPanel<'a>| {
        let events = events(view.shape, record);
        let style = RowStyle::new(view.shape, &events, across, axis.ends.1, height);
        let step = step(&view);
        let mut rows = vec![Vec::new(); view.shape.ranks().div_ceil(step)];
        for event in events.into_iter().filter(|event| event.rank.index().is_multiple_of(step)) {
            rows[event.rank.index() / step].push(event);
        }
        let blended = rows.iter().any(|mine| style.is_blended(mine));
        Laid { view, rows, step, style, blended }
    };
    panels.iter().map(lay).collect()
}

impl Laid<'_> {
    fn height(&self) -> f64 {
        self.style.height * self.rows.len() as f64
    }

    fn has_lanes(&self) -> bool {
        self.style.height >= LANES_FROM && !self.blended
    }

    fn occurs(&self, kind: EventKind) -> bool {
        self.rows.iter().flatten().any(|event| event.kind == kind)
    }
}

fn draw_panel(picture: &mut Picture, panel: &Laid, axis: &Axis, top: f64, is_last: bool) {
    let (left, right) = panel.style.across;
    let corners = [left, top + HEADING, right, top + HEADING + panel.height()];
    draw_heading(picture, panel, top + 20.0);
    draw_x_grid(picture, corners, axis);
    draw_rows(picture, panel, corners);
    mark_makespan(picture, panel, corners);
    picture.path(vec![(left, corners[1]), (left, corners[3])], 1.0, INK);
    if is_last {
        draw_x_labels(picture, corners, axis);
    } else {
        picture.path(vec![(left, corners[3]), (right, corners[3])], 0.5, FAINT_INK);
    }
}

/// Frames operations and joins the rows of messages. What belongs to a rank that is not drawn is left out.
fn draw_path(picture: &mut Picture, panel: &Laid, top: f64, path: &[Event]) {
    let style = &panel.style;
    let bar = |rank: Rank| {
        let row = rank.index().is_multiple_of(panel.step).then_some(rank.index() / panel.step)?;
        (row < panel.rows.len()).then(|| style.bar(top + style.height * row as f64))
    };
    for event in path {
        let (left, right) = (style.x(event.start), style.x(event.end));
        let Some((upper, lower)) = bar(event.rank) else { continue };
        let Some(peer) = event.peer else {
            picture.frame([left, upper, right, lower], 2.0, ALERT);
            continue;
        };
        if let Some((peer_upper, peer_lower)) = bar(peer) {
            let (from, to) = if peer > event.rank { (lower, peer_upper) } else { (upper, peer_lower) };
            picture.path(vec![(left, from), (right, to)], 2.0, ALERT);
        }
    }
}

fn draw_heading(picture: &mut Picture, panel: &Laid, y: f64) {
    let view = &panel.view;
    let rate = percent(view.summary.bubble().by_makespan);
    let text = format!("{}: {}; bubble {rate}", view.labels.schedule, view.shape_text());
    let room = f64::from(WIDTH) - 2.0 * MARGIN;
    picture.text(shortened(&text, LABEL, room), (MARGIN, y), LABEL, Across::Left, INK);
}

fn draw_rows(picture: &mut Picture, panel: &Laid, corners: [f64; 4]) {
    let (style, height) = (&panel.style, panel.style.height);
    let setup = style.x(Time::from_nanos(panel.view.summary.setup.as_nanos()));
    let labelled = label_every(height, panel.rows.len());
    for (place, mine) in panel.rows.iter().enumerate() {
        let top = corners[1] + height * place as f64;
        if setup > corners[0] {
            picture.fill([corners[0], top + height * 0.3, setup, top + height * 0.7], SETUP);
        }
        style.draw(picture, top, mine);
        if place.is_multiple_of(labelled) {
            let at = (corners[0] - 7.0, top + height / 2.0);
            let size = if labelled == 1 && height >= 16.0 { LABEL } else { SMALL };
            picture.text(format!("rank {}", place * panel.step), at, size, Across::Right, INK);
        }
    }
}

/// Every how many rows a label has room: 1, 2, 4, 8, ...
fn label_every(row: f64, rows: usize) -> usize {
    let mut every = 1;
    while row * (every as f64) < SMALL + 1.0 && every < rows {
        every *= 2;
    }
    every
}

fn mark_makespan(picture: &mut Picture, panel: &Laid, corners: [f64; 4]) {
    let x = panel.style.x(panel.view.summary.makespan);
    picture.dashed(&[(x, corners[1] - 5.0), (x, corners[3])], 1.0, ALERT);
    let label = format!("makespan {}", time_exact(panel.view.summary.makespan.since(Time::ZERO)));
    let width = text_width(&label, LABEL);
    let middle = x.min(corners[2] + 8.0 - width / 2.0).max(corners[0] + width / 2.0);
    picture.text(label, (middle, corners[1] - 13.0), LABEL, Across::Middle, ALERT);
}

/// The legend: only what is there.
fn entries(laid: &[Laid]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for kind in EventKind::ALL {
        let is_drawn = |panel: &Laid| panel.occurs(kind) && (!kind.is_message() || panel.has_lanes());
        let swatch = if kind.is_message() { Swatch::Line } else { Swatch::Block };
        entries.extend(laid.iter().any(is_drawn).then(|| entry(swatch, of_kind(kind), name_of(kind))));
    }
    if laid.iter().any(|panel| panel.blended) {
        let both = mixed(of_kind(EventKind::Forward), of_kind(EventKind::Backward), 2.0 / 3.0);
        entries.push(entry(Swatch::Block, both, "a mix of them"));
    }
    if laid.iter().any(|panel| panel.view.summary.setup.as_nanos() > 0) {
        entries.push(entry(Swatch::Block, SETUP, "setup"));
    }
    let chunks = laid.iter().map(|panel| panel.view.shape.chunks()).max().unwrap_or(1);
    let what = if laid.iter().any(|panel| panel.view.shape.copies() > 1) { "copy" } else { "chunk" };
    if chunks > 1 {
        let lightest = of_chunk(EventKind::Forward, chunks - 1, chunks);
        entries.push(entry(Swatch::Block, lightest, format!("lighter: later {what}")));
    }
    entries
}

/// What the picture leaves out, in one line.
fn notes(laid: &[Laid]) -> String {
    let mut notes = Vec::new();
    if let Some(step) = laid.iter().map(|panel| panel.step).max().filter(|&step| step > 1) {
        notes.push(format!("one rank in {step} is drawn"));
    }
    if laid.iter().any(|panel| panel.blended) {
        notes.push("operations too narrow to be told apart are mixed, transfers left out".to_owned());
    } else if laid.iter().any(|panel| !panel.has_lanes() && panel.occurs(EventKind::Activation)) {
        notes.push("rows are too thin for transfers".to_owned());
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};
    use crate::picture::Shape;
    use crate::testing::Sample;

    fn drawn(samples: &[Sample]) -> Picture {
        let panels: Vec<_> = samples.iter().map(|s| (s.view(), &s.outcome.record)).collect();
        gantt(&panels)
    }

    #[test]
    fn every_size_is_laid_out_without_overlaps() {
        for (schedule, shape) in [
            ("1f1b", [1, 1, 1]),
            ("1f1b", [2, 1, 4]),
            ("fill-drain", [4, 1, 8]),
            ("interleaved", [4, 2, 8]),
            ("1f1b", [16, 1, 64]),
            ("interleaved", [8, 4, 16]),
            ("1f1b", [64, 1, 512]),
            ("fill-drain", [300, 1, 8]),
        ] {
            let sample = Sample::new(schedule, shape[0], shape[1], shape[2]);
            check_layout(&drawn(&[sample]), &format!("{schedule} {shape:?}"));
        }
    }

    #[test]
    fn a_comparison_shares_the_axis_and_names_every_makespan() {
        let samples = [Sample::new("fill-drain", 4, 1, 8), Sample::new("1f1b", 4, 1, 8)];
        let picture = drawn(&samples);
        check_layout(&picture, "comparison");
        let words = words(&picture);
        for label in ["makespan 337 ms", "makespan 347 ms", "time [ms]"] {
            assert_eq!(words.iter().filter(|&&word| word == label).count(), 1, "{label}: {words:?}");
        }
    }

    #[test]
    fn numbers_are_drawn_while_they_fit() {
        let small = drawn(&[Sample::new("1f1b", 4, 1, 8)]);
        assert_eq!(words(&small).iter().filter(|&&word| word == "7").count(), 8, "F and B of each rank");
        let large = drawn(&[Sample::new("1f1b", 16, 1, 256)]);
        assert!(words(&large).iter().all(|&word| word != "7"));
    }

    #[test]
    fn the_work_of_a_large_step_is_bounded() {
        let sample = Sample::new("1f1b", 16, 1, 8_000);
        let picture = drawn(&[sample]);
        assert!(picture.shapes().len() < 20_000, "{} shapes for 256,000 operations", picture.shapes().len());
        assert!(words(&picture).iter().any(|word| word.contains("mixed")));
    }

    #[test]
    fn very_long_and_very_short_steps_have_their_unit() {
        let unit = |factor| {
            let picture = drawn(&[Sample::stretched("1f1b", [2, 1, 2], factor)]);
            check_layout(&picture, "stretched");
            words(&picture).iter().find(|word| word.starts_with("time [")).map(ToString::to_string)
        };
        assert_eq!(unit(1).as_deref(), Some("time [ms]"));
        assert_eq!(unit(1_000).as_deref(), Some("time [s]"));
        assert_eq!(unit(10_000_000).as_deref(), Some("time [d]"));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        check_layout(&gantt(&[]), "nothing");
        assert!(gantt(&[]).to_png().is_ok());
    }

    #[test]
    fn halves_of_an_overlapped_pair_stand_above_each_other() {
        let picture = drawn(&[Sample::ordered(2, &["0F0 0F1+ 0I0 0W0 0B1"])]);
        check_layout(&picture, "pair");
        let boxes = picture.shapes().iter().filter_map(|shape| match shape {
            Shape::Box { corners, .. } if corners[2] - corners[0] > 100.0 => Some(*corners),
            _ => None,
        });
        let boxes: Vec<_> = boxes.collect();
        let halves: Vec<_> = boxes
            .iter()
            .filter(|one| {
                boxes.iter().filter(|b| (b[0] - one[0]).abs() + (b[2] - one[2]).abs() < 1e-9).count() == 2
            })
            .collect();
        assert_eq!(halves.len(), 2, "{boxes:?}");
        assert!(halves[0][3] <= halves[1][1], "{halves:?}");
    }

    #[test]
    fn a_path_frames_its_operations_and_joins_its_ranks() {
        let sample = Sample::new("1f1b", 2, 1, 1);
        let path = events(&sample.shape, &sample.outcome.record);
        let picture = gantt_with_path((sample.view(), &sample.outcome.record), &path);
        check_layout(&picture, "path");
        let lines = picture.shapes().iter().filter_map(|shape| match shape {
            Shape::Path { points, width, .. } if *width > 1.9 && *width < 2.1 => Some(points.len()),
            _ => None,
        });
        let mut lengths: Vec<_> = lines.collect();
        lengths.sort_unstable();
        assert_eq!(
            lengths,
            [2, 2, 5, 5, 5, 5, 5, 5],
            "two messages; two forwards, two backwards, two updates"
        );
        assert!(words(&picture).contains(&"critical path"));
    }
}
