//! The picture of rounds: a row for each engine (or several), scoring pool and the trainer; responses as bars, or
//! as the share of slots that are busy; weights on their way across all rows.
//!
//! The first rounds are drawn, as many as can be told apart; the rest look like them.

use super::RlView;
use super::paints::Work;
use super::rows::{Content, RowPlan, rows};
use crate::axes::{Axis, draw_x_grid, draw_x_labels};
use crate::chart::draw_title;
use crate::font::{shortened, text_width};
use crate::lane::{Segment, Window, draw_lane, draw_shares, shares};
use crate::legend::{Entry, legend, note};
use crate::picture::{Across, Picture};
use crate::theme::{FAINT_INK, GRID, INK, LABEL, MARGIN, PAPER, SMALL, WIDTH, mixed};
use crate::units::grouped;

/// Points above the rows for the names of rounds, between rows, and below them for the axis.
const ROUNDS: f64 = 20.0;
const GAP: f64 = 4.0;
const FOOT: f64 = 50.0;
/// Rounds drawn at least, and at most; and as many as keep to so many bars.
const DRAWN: (usize, usize) = (4, 24);
const BARS: usize = 300;
/// Bars from this width on are set apart from each other by a fine line.
const SET_APART: f64 = 3.0;

/// Draws the first rounds.
pub fn rl_timeline(view: &RlView) -> Picture {
    let (time, drawn) = time(view);
    let names = name_width(view);
    let window = Window { time, across: (MARGIN + names, f64::from(WIDTH) - MARGIN - 10.0) };
    let (rows, everything) = rows(view.inputs, view.spans, &window);
    let entries = entries(&rows, &everything);
    let right = f64::from(WIDTH) - MARGIN;
    let legend_at = (MARGIN, MARGIN + 26.0);
    let head = legend_at.1 + legend(None, legend_at, right, &entries) + 8.0 + ROUNDS;
    let body: f64 = rows.iter().map(|row| row.height + GAP).sum();
    let mut picture = Picture::new(WIDTH, (head + body + FOOT + MARGIN + 4.0).ceil() as u32);
    draw_title(&mut picture, view.name);
    legend(Some(&mut picture), legend_at, right, &entries);
    let corners = [window.across.0, head, window.across.1, head + body];
    let axis = axis(time);
    draw_x_grid(&mut picture, corners, &axis);
    let mut top = head;
    for row in &rows {
        draw_row(&mut picture, &window, row, top);
        top += row.height + GAP;
    }
    for segment in everything {
        Work::ALL[segment.paint]
            .paint()
            .fill(&mut picture, [window.x(segment.from), head, window.x(segment.to), head + body]);
    }
    draw_rounds(&mut picture, view, &window, corners);
    picture.path(vec![(corners[0], head), (corners[0], corners[3])], 1.0, INK);
    draw_x_labels(&mut picture, corners, &axis);
    note(&mut picture, &notes(view, &rows, drawn), (MARGIN, corners[3] + FOOT + 4.0));
    picture
}

/// From the start (or, after a long warm-up, the first measured round) to the end of the last round drawn; and
/// how many measured rounds that are.
fn time(view: &RlView) -> ((u64, u64), usize) {
    let rounds = &view.sensitivity.base.rounds;
    let Some(first) = rounds.first() else {
        return ((0, 1), 0);
    };
    let from = if view.inputs.warmup > 2 { first.start.as_nanos() } else { 0 };
    let end = |count: usize| rounds[count - 1].end.as_nanos();
    let bars = |count: usize| {
        let inside = view.spans.iter().filter(|span| span.interval.start.as_nanos() < end(count));
        inside.filter(|span| span.interval.end.as_nanos() > from).count()
    };
    let mut count = rounds.len().min(DRAWN.0);
    while count < rounds.len().min(DRAWN.1) && bars(count + 1) <= BARS {
        count += 1;
    }
    ((from, end(count).max(from + 1)), count)
}

fn axis((from, to): (u64, u64)) -> Axis {
    if from == 0 {
        return Axis::time("time", 0.0, to as f64);
    }
    let what = format!("time since {}", pipestep_engine::Time::from_nanos(from));
    Axis::time(&what, 0.0, (to - from) as f64)
}

/// Points for the names of the rows.
fn name_width(view: &RlView) -> f64 {
    let engines = format!("engines {0}-{0}", view.inputs.rollout.engines);
    let pools = view.inputs.scoring.iter().map(|pool| pool.name.as_str());
    let widths = pools.chain(["trainer", engines.as_str()]).map(|name| text_width(name, LABEL));
    widths.fold(60.0, f64::max).min(160.0) + 14.0
}

fn draw_row(picture: &mut Picture, window: &Window, row: &RowPlan, top: f64) {
    let paints = Work::ALL.map(Work::paint);
    match &row.content {
        Content::Lanes(lanes) => {
            let height = row.height / lanes.len().max(1) as f64;
            for (place, lane) in lanes.iter().enumerate() {
                let upper = top + height * place as f64;
                let ends = (upper + 0.5, upper + height - 0.5);
                if !draw_lane(picture, window, lane, &paints, ends) {
                    set_apart(picture, window, lane, ends);
                }
            }
        }
        Content::Shared { servers, segments } => {
            let mut columns = shares(window, segments.iter(), paints.len());
            for share in columns.iter_mut().flatten() {
                *share /= (*servers).max(1) as f64;
            }
            let (left, right) = window.across;
            picture.fill([left, top, right, top + row.height], mixed(GRID, PAPER, 0.5));
            draw_shares(picture, window, &columns, &paints, (top, top + row.height));
        }
    }
    for (place, segment) in &row.whole {
        let height = row.height / f64::from(row.engines);
        let upper = top + height * f64::from(*place);
        let corners = [window.x(segment.from), upper, window.x(segment.to), upper + height];
        Work::ALL[segment.paint].paint().fill(picture, corners);
    }
    let room = window.across.0 - MARGIN - 9.0;
    let size = if row.height >= 16.0 { LABEL } else { SMALL };
    let label = shortened(&row.label, size, room);
    picture.text(label, (window.across.0 - 9.0, top + row.height / 2.0), size, Across::Right, INK);
}

/// A fine line between bars that touch.
fn set_apart(picture: &mut Picture, window: &Window, lane: &[Segment], (top, bottom): (f64, f64)) {
    for pair in lane.windows(2) {
        let (x, next) = (window.x(pair[0].to), window.x(pair[1].from));
        let is_wide = window.x(pair[1].to) - next >= SET_APART;
        if is_wide && next - x < 0.5 && window.has(pair[0].to) {
            picture.path(vec![(x, top), (x, bottom)], 0.75, PAPER);
        }
    }
}

/// Where each measured round ends, with its number where there is room, all in the same form; and where the first one
/// begins, if it was warmed up for.
fn draw_rounds(picture: &mut Picture, view: &RlView, window: &Window, [edge, top, _, bottom]: [f64; 4]) {
    let rounds = view.sensitivity.base.rounds.iter().take_while(|round| window.has(round.end.as_nanos()));
    let ends = rounds.map(|round| (window.x(round.start.as_nanos()), window.x(round.end.as_nanos())));
    let ends: Vec<(f64, f64)> = ends.collect();
    let names: Vec<String> =
        (1..=ends.len()).map(|number| format!("{} {number}", view.round_word())).collect();
    let fits = |text: &str, (left, right): (f64, f64)| text_width(text, SMALL) + 8.0 <= right - left;
    let is_long = names.iter().zip(&ends).all(|(name, &ends)| fits(name, ends));
    let mut draw = |(left, right): (f64, f64), text: &str| {
        picture.dashed(&[(right, top - ROUNDS + 6.0), (right, bottom)], 1.0, INK);
        if fits(text, (left, right)) {
            let middle = f64::midpoint(left, right);
            picture.text(text, (middle, top - ROUNDS / 2.0), SMALL, Across::Middle, FAINT_INK);
        }
    };
    if let Some(&(begin, _)) = ends.first().filter(|(begin, _)| *begin > edge + 1.0) {
        draw((edge, begin), "warm-up");
    }
    for (number, (&ends, name)) in (1..).zip(ends.iter().zip(names)) {
        let text = if is_long { name } else { number.to_string() };
        draw(ends, &text);
    }
}

/// The legend: only what is drawn.
fn entries(rows: &[RowPlan], everything: &[Segment]) -> Vec<Entry> {
    let mut occurs = [false; Work::ALL.len()];
    let mut see = |segments: &[Segment]| segments.iter().for_each(|segment| occurs[segment.paint] = true);
    see(everything);
    for row in rows {
        match &row.content {
            Content::Lanes(lanes) => lanes.iter().for_each(|lane| see(lane)),
            Content::Shared { segments, .. } => see(segments),
        }
        row.whole.iter().for_each(|(_, segment)| see(&[*segment]));
    }
    Work::ALL.into_iter().filter(|work| occurs[*work as usize]).map(Work::entry).collect()
}

/// What the picture leaves out or puts together, in one line.
fn notes(view: &RlView, rows: &[RowPlan], drawn: usize) -> String {
    let mut notes = Vec::new();
    let all = view.sensitivity.base.rounds.len();
    if drawn < all {
        notes.push(format!("{}s 1 to {drawn} of {} are drawn", view.round_word(), grouped(all as u64)));
    }
    if rows.iter().any(|row| matches!(row.content, Content::Shared { .. })) {
        notes
            .push("in rows of many slots or workers the height is the share of them that is busy".to_owned());
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};
    use crate::rl::testing::RlSample;

    #[test]
    fn any_size_is_laid_out_and_bounded() {
        for (name, sample) in [
            ("small", RlSample::small()),
            ("one step off", RlSample::one_step_off()),
            ("large", RlSample::large()),
            ("async with failures", RlSample::broken()),
        ] {
            let picture = rl_timeline(&sample.view());
            check_layout(&picture, name);
            assert!(picture.shapes().len() < 25_000, "{name}: {} shapes", picture.shapes().len());
            assert!(picture.to_png().is_ok());
        }
    }

    #[test]
    fn the_legend_names_what_is_drawn_and_no_more() {
        let words = |sample: &RlSample| words(&rl_timeline(&sample.view())).join("|");
        let small = words(&RlSample::small());
        assert!(small.contains("response|update|weights on their way"), "{small}");
        assert!(!small.contains("down") && small.contains("round 1"), "{small}");
        assert!(words(&RlSample::broken()).contains("down"));
    }

    #[test]
    fn nothing_recorded_is_an_empty_frame() {
        let mut sample = RlSample::small();
        sample.spans.clear();
        check_layout(&rl_timeline(&sample.view()), "no spans");
    }
}
