//! Time against memory: one dot a candidate, the Pareto front marked, labels beside their dots.
//!
//! Labels are placed one after the other, the front's first, each at the nearest of a fixed set of places where
//! it covers nothing. What finds no place stays a dot, and the note says how many.

use pipestep_engine::{Bytes, Duration, Time};

use crate::axes::{Frame, Measure};
use crate::chart::{AxisSpec, chart, chart_note};
use crate::font::text_width;
use crate::pareto::pareto_front;
use crate::picture::{Across, Picture, distance};
use crate::table::schedule_with_chunks;
use crate::theme::{ALERT, Colour, FAINT_INK, INK, LABEL};
use crate::units::bytes_short;
use crate::{EventKind, StepView, theme};

/// More candidates than this are labelled on the front only.
const LABELLED: usize = 40;
const DOT: f64 = 5.0;
/// Points between a label and the end of the line to its dot.
const GAP: f64 = 3.0;

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What its label says.
    pub name: String,
    /// How long its step takes.
    pub makespan: Duration,
    /// The highest peak of its ranks.
    pub peak: Bytes,
}

impl From<&StepView<'_>> for Candidate {
    fn from(view: &StepView) -> Self {
        let makespan = view.summary.makespan.since(Time::ZERO);
        Self { name: schedule_with_chunks(view), makespan, peak: view.highest_peak().1 }
    }
}

/// Draws all candidates, with the budget if there is one.
pub fn tradeoff(title: &str, candidates: &[Candidate], budget: Option<Bytes>) -> Picture {
    let points: Vec<(u64, u64)> = candidates.iter().map(|c| (c.makespan.as_nanos(), c.peak.get())).collect();
    let front = pareto_front(&points);
    let highest = points.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0);
    let shown = budget.map(Bytes::get).filter(|&budget| budget < 2 * highest);
    let x = AxisSpec::linear("makespan", Measure::Time).over(points.iter().map(|p| p.0 as f64), 0.12);
    let y = AxisSpec::linear("highest peak of a rank", Measure::Bytes)
        .over(points.iter().map(|p| p.1).chain(shown).map(|bytes| bytes as f64), 0.12);
    let note = "filled: on the Pareto front, nothing else is faster with no more memory or smaller with no more time";
    let (mut picture, frame) = chart(title, x, y, 10.0);
    chart_note(&mut picture, note);
    let mut taken = Vec::new();
    if let Some(budget) = shown {
        taken.push(draw_budget(&mut picture, &frame, budget));
    }
    let mut lines = draw_front(&mut picture, &frame, &points, &front);
    lines.extend(shown.map(|budget| {
        let [left, _, right, _] = frame.corners;
        let y = frame.at(0.0, budget as f64).1;
        [left, y - 2.0, right, y + 2.0]
    }));
    let dots: Vec<_> = points.iter().map(|&(time, bytes)| frame.at(time as f64, bytes as f64)).collect();
    taken.extend(dots.iter().map(|&(x, y)| [x - DOT, y - DOT, x + DOT, y + DOT]));
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&index| (!front[index], points[index]));
    for &index in order.iter().rev() {
        draw_dot(&mut picture, dots[index], front[index]);
    }
    order.retain(|&index| front[index] || candidates.len() <= LABELLED);
    let named: Vec<_> = order.iter().map(|&index| (dots[index], candidates[index].name.as_str())).collect();
    let areas = place_labels(&frame, &named, &taken, &lines);
    for ((&index, &(dot, name)), area) in order.iter().zip(&named).zip(&areas) {
        if let Some(area) = area {
            draw_label(&mut picture, *area, dot, name, if front[index] { INK } else { FAINT_INK });
        }
    }
    let unnamed = areas.iter().filter(|area| area.is_none()).count();
    if unnamed > 0 {
        let at = (frame.corners[2], frame.corners[3] + 32.0);
        picture.text(format!("{unnamed} without room for a name"), at, LABEL, Across::Right, FAINT_INK);
    }
    picture
}

fn draw_budget(picture: &mut Picture, frame: &Frame, budget: u64) -> [f64; 4] {
    let [left, _, right, _] = frame.corners;
    let y = frame.at(0.0, budget as f64).1;
    picture.dashed(&[(left, y), (right, y)], 1.5, ALERT);
    let label = format!("budget {}", bytes_short(Bytes::new(budget)));
    let width = text_width(&label, LABEL);
    picture.text(label, (left + 8.0, y - 10.0), LABEL, Across::Left, ALERT);
    [left + 8.0, y - 18.0, left + 8.0 + width, y]
}

/// The front as stairs: what lies above and to the right of them is beaten. Returns what the stairs cover.
fn draw_front(picture: &mut Picture, frame: &Frame, points: &[(u64, u64)], front: &[bool]) -> Vec<[f64; 4]> {
    let mut on_front: Vec<_> =
        points.iter().zip(front).filter(|&(_, &on)| on).map(|(&point, _)| point).collect();
    on_front.sort_unstable();
    on_front.dedup();
    let mut stairs = Vec::new();
    for (time, bytes) in on_front {
        let (x, y) = frame.at(time as f64, bytes as f64);
        if let Some(&(_, last)) = stairs.last() {
            stairs.push((x, last));
        }
        stairs.push((x, y));
    }
    picture.dashed(&stairs, 1.0, theme::of_kind(EventKind::Update));
    let around = |ends: &[(f64, f64)]| {
        let ((x0, y0), (x1, y1)) = (ends[0], ends[1]);
        [x0.min(x1) - 2.0, y0.min(y1) - 2.0, x0.max(x1) + 2.0, y0.max(y1) + 2.0]
    };
    stairs.windows(2).map(around).collect()
}

fn draw_dot(picture: &mut Picture, at: (f64, f64), on_front: bool) {
    let colour = if on_front { theme::of_kind(EventKind::Forward) } else { FAINT_INK };
    picture.dot(at, DOT, colour);
    if !on_front {
        picture.dot(at, DOT - 1.5, theme::PAPER);
    }
}

/// A place for each name beside its dot, the first ones first; none where there is no room. A name that finds no good
/// place goes first in the next try; the best try counts.
fn place_labels(
    frame: &Frame,
    named: &[((f64, f64), &str)],
    taken: &[[f64; 4]],
    lines: &[[f64; 4]],
) -> Vec<Option<[f64; 4]>> {
    const TRIES: usize = 16;
    let mut order: Vec<usize> = (0..named.len()).collect();
    let mut best: Option<(usize, Vec<_>)> = None;
    for _ in 0..TRIES {
        let (areas, bad) = place_in_order(frame, named, &order, taken.to_vec(), lines);
        if best.as_ref().is_none_or(|(known, _)| bad.len() < *known) {
            best = Some((bad.len(), areas));
        }
        let Some(&first) = bad.first() else { break };
        order.retain(|&index| index != first);
        order.insert(0, first);
    }
    best.map_or_else(Vec::new, |(_, areas)| areas)
}

/// The places that names get in this order, and which of them have none or no good one.
fn place_in_order(
    frame: &Frame,
    named: &[((f64, f64), &str)],
    order: &[usize],
    mut taken: Vec<[f64; 4]>,
    lines: &[[f64; 4]],
) -> (Vec<Option<[f64; 4]>>, Vec<usize>) {
    let (mut areas, mut bad) = (vec![None; named.len()], Vec::new());
    for &index in order {
        let place = free_place(frame, &taken, lines, named, index);
        if !place.is_some_and(|(_, is_good)| is_good) {
            bad.push(index);
        }
        if let Some((area, _)) = place {
            taken.push(area);
            taken.extend(leader(&area, named[index].0).map(|(x, y)| [x - 1.0, y - 1.0, x + 1.0, y + 1.0]));
            areas[index] = Some(area);
        }
    }
    (areas, bad)
}

/// The nearest place for a name beside its dot where it covers nothing that is taken, and whether it is good: it covers
/// no line either, the line to its dot crosses nothing, and no other dot is nearly as near.
fn free_place(
    frame: &Frame,
    taken: &[[f64; 4]],
    lines: &[[f64; 4]],
    named: &[((f64, f64), &str)],
    index: usize,
) -> Option<([f64; 4], bool)> {
    // How much further away other dots are than a label's own, where no line joins it.
    const CLEARANCE: f64 = 8.0;
    let [left, top, right, bottom] = frame.corners;
    let (dot, name) = named[index];
    let is_inside =
        |area: &[f64; 4]| area[0] >= left && area[1] >= top && area[2] <= right + 10.0 && area[3] <= bottom;
    let covers = |area: &[f64; 4], things: &[[f64; 4]]| things.iter().any(|thing| overlap(area, thing));
    let crosses = |area: &[f64; 4]| {
        let between = taken.iter().filter(|thing| !contains(thing, dot));
        leader(area, dot).any(|point| between.clone().any(|thing| contains(thing, point)))
    };
    let misleads = |area: &[f64; 4]| {
        let is_joined = leader(area, dot).next().is_some();
        let others = named.iter().map(|&(other, _)| other).filter(|&other| other != dot);
        !is_joined
            && others.into_iter().any(|other| distance_to(area, other) < distance_to(area, dot) + CLEARANCE)
    };
    let free = || {
        let all = places(dot, text_width(name, LABEL), LABEL);
        all.filter(|area| is_inside(area) && !covers(area, taken))
    };
    let is_clear = |area: &[f64; 4]| !crosses(area) && !misleads(area);
    let good = free().find(|area| !covers(area, lines) && is_clear(area));
    let fair = || free().find(is_clear).or_else(|| free().next());
    good.map(|area| (area, true)).or_else(|| fair().map(|area| (area, false)))
}

/// Points along the line between a dot and its label; none where they touch.
fn leader(area: &[f64; 4], dot: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    const POINTS: u32 = 24;
    let end = nearest(area, dot);
    let is_drawn = distance_to(area, dot) > DOT + 6.0;
    (0..if is_drawn { POINTS } else { 0 }).map(move |point| {
        let share = f64::from(point) / f64::from(POINTS);
        (dot.0 + share * (end.0 - dot.0), dot.1 + share * (end.1 - dot.1))
    })
}

/// The point of a label that is nearest to its dot.
fn nearest(area: &[f64; 4], dot: (f64, f64)) -> (f64, f64) {
    (dot.0.clamp(area[0], area[2]), dot.1.clamp(area[1], area[3]))
}

fn distance_to(area: &[f64; 4], dot: (f64, f64)) -> f64 {
    distance(nearest(area, dot), dot)
}

fn draw_label(picture: &mut Picture, area: [f64; 4], dot: (f64, f64), name: &str, colour: Colour) {
    // A label that does not touch its dot is joined to it.
    if leader(&area, dot).next().is_some() {
        let end = nearest(&area, dot);
        let share = GAP / distance_to(&area, dot);
        let end = (end.0 + share * (dot.0 - end.0), end.1 + share * (dot.1 - end.1));
        picture.path(vec![dot, end], 0.5, FAINT_INK);
    }
    let middle = (f64::midpoint(area[0], area[2]), f64::midpoint(area[1], area[3]));
    picture.text(name, middle, LABEL, Across::Middle, colour);
}

/// Places for a label around a dot, nearest first: right, left, above, below, the corners and between them, in wider rings.
fn places((x, y): (f64, f64), width: f64, height: f64) -> impl Iterator<Item = [f64; 4]> {
    let rings = [DOT + 4.0, 18.0, 34.0, 54.0, 80.0, 110.0];
    rings.into_iter().flat_map(move |ring| {
        let (far_x, far_y) = (ring + width / 2.0, ring + height / 2.0 - 3.0);
        let towards = |x: f64, y: f64| (ring * x + width / 2.0, ring * y + height / 2.0 - 2.0);
        let (slant, flat, steep) = (towards(0.7, 0.7), towards(0.9, 0.4), towards(0.4, 0.9));
        let offsets = [
            (far_x, 0.0),
            (slant.0, -slant.1),
            (0.0, -far_y),
            (-far_x, 0.0),
            (0.0, far_y),
            (slant.0, slant.1),
            (-slant.0, -slant.1),
            (-slant.0, slant.1),
            (flat.0, -flat.1),
            (flat.0, flat.1),
            (-flat.0, -flat.1),
            (-flat.0, flat.1),
            (steep.0, -steep.1),
            (steep.0, steep.1),
            (-steep.0, -steep.1),
            (-steep.0, steep.1),
        ];
        offsets.into_iter().map(move |(dx, dy)| {
            let (x, y) = (x + dx, y + dy);
            [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
        })
    })
}

fn overlap(one: &[f64; 4], other: &[f64; 4]) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

fn contains(area: &[f64; 4], (x, y): (f64, f64)) -> bool {
    (area[0]..=area[2]).contains(&x) && (area[1]..=area[3]).contains(&y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};
    use crate::testing::Sample;
    use proptest::prelude::*;

    fn candidate(name: String, ms: u64, mb: u64) -> Candidate {
        Candidate { name, makespan: Duration::from_nanos(ms * 1_000_000), peak: Bytes::new(mb * 1_000_000) }
    }

    #[test]
    fn every_schedule_of_a_comparison_is_named() {
        let samples = [
            Sample::new("1f1b", 4, 1, 8),
            Sample::new("fill-drain", 4, 1, 8),
            Sample::new("interleaved", 4, 2, 8),
        ];
        let candidates: Vec<_> = samples.iter().map(|sample| Candidate::from(&sample.view())).collect();
        let picture = tradeoff("Qwen3-8B", &candidates, Some(Bytes::new(1_000_000_000)));
        check_layout(&picture, "three");
        for name in ["1f1b", "fill-drain", "interleaved, 2 chunks", "budget 1 GB"] {
            assert!(words(&picture).contains(&name), "{name}");
        }
    }

    #[test]
    fn a_crowd_is_named_on_the_front_only() {
        let crowd: Vec<_> =
            (0..500).map(|i| candidate(format!("c{i}"), 100 + i * 7 % 101, 100 + i * 13 % 97)).collect();
        let picture = tradeoff("crowd", &crowd, None);
        check_layout(&picture, "crowd");
        assert!(words(&picture).iter().filter(|word| word.starts_with('c')).count() < 30);
    }

    #[test]
    fn no_line_to_a_label_crosses_another_label() {
        // What a search found, those on the front first.
        let points = [
            ("dualpipe, two copies of the model", 403, 500),
            ("zb-v-auto, 2 chunks", 420, 400),
            ("interleaved-zb, 3 chunks", 457, 399),
            ("v-half, 2 chunks", 458, 300),
            ("zb-v, 2 chunks", 426, 400),
            ("dualpipe-v, 2 chunks", 435, 450),
            ("interleaved-zb, 2 chunks", 435, 400),
            ("zb-h1", 447, 400),
            ("zb-1p", 447, 400),
            ("interleaved-zb", 447, 400),
            ("interleaved, 3 chunks", 447, 499),
            ("grouped-interleaved, 3 chunks", 447, 499),
            ("interleaved, 4 chunks", 455, 475),
            ("grouped-interleaved, 4 chunks", 455, 475),
            ("interleaved-zb, 4 chunks", 488, 400),
            ("greedy, 2 chunks", 496, 450),
            ("greedy", 503, 400),
        ];
        let axis = |ends: [f64; 2]| AxisSpec::linear("", Measure::Number).over(ends.into_iter(), 0.12);
        let (mut picture, frame) = chart("", axis([403.0, 584.0]), axis([0.0, 500.0]), 10.0);
        let numbers = points.map(|(_, x, y)| (x, y));
        let on_front = std::array::from_fn::<bool, 17, _>(|index| index < 4);
        let lines = draw_front(&mut picture, &frame, &numbers, &on_front);
        let dots = numbers.map(|(x, y)| frame.at(x as f64, y as f64));
        let named: Vec<_> = dots.into_iter().zip(points).map(|(dot, (name, ..))| (dot, name)).collect();
        let around_dots = dots.map(|(x, y)| [x - DOT, y - DOT, x + DOT, y + DOT]).to_vec();
        let areas = place_labels(&frame, &named, &around_dots, &lines);
        let areas: Vec<[f64; 4]> = areas.into_iter().map(|area| area.expect("there is room")).collect();
        for (index, (area, (dot, name))) in areas.iter().zip(&named).enumerate() {
            let others = areas.iter().zip(&points).enumerate().filter(|(other, _)| *other != index);
            for (_, (other, (across, ..))) in others {
                assert!(!leader(area, *dot).any(|point| contains(other, point)), "{name} across {across}");
            }
        }
    }

    #[test]
    fn nothing_and_one_candidate_are_drawn() {
        check_layout(&tradeoff("nothing", &[], None), "nothing");
        check_layout(&tradeoff("one", &[candidate("only".into(), 5, 5)], None), "one");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn labels_never_cover_each_other(points in prop::collection::vec((300_u64..360, 100_u64..3_000), 1..30)) {
            let named = |(index, (ms, mb))| candidate(format!("schedule {index}"), ms, mb);
            let candidates: Vec<_> = points.into_iter().enumerate().map(named).collect();
            check_layout(&tradeoff("random", &candidates, Some(Bytes::new(1_000_000_000))), "random");
        }
    }
}
