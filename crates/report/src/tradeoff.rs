//! Time against memory: one dot a candidate, the Pareto front marked, labels beside their dots.
//!
//! Labels are placed one after the other, the front's first, each at the nearest of a fixed set of places where
//! it covers nothing. What finds no place stays a dot, and the note says how many.

use pipestep_engine::{Bytes, Duration, Time};

use crate::axes::{Frame, Measure};
use crate::chart::{AxisSpec, chart};
use crate::font::text_width;
use crate::pareto::pareto_front;
use crate::picture::{Across, Picture};
use crate::table::schedule_with_chunks;
use crate::theme::{ALERT, Colour, FAINT_INK, INK, LABEL};
use crate::units::bytes_short;
use crate::{EventKind, StepView, theme};

/// More candidates than this are labelled on the front only.
const LABELLED: usize = 40;
const DOT: f64 = 5.0;

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
    let (mut picture, frame) = chart(title, note, x, y, 10.0);
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
    let mut unnamed = 0;
    for index in order {
        let (dot, name) = (dots[index], candidates[index].name.as_str());
        // Rather across a line than nowhere.
        let area = free_place(&frame, &[&taken, &lines], dot, name)
            .or_else(|| free_place(&frame, &[&taken], dot, name));
        match area {
            Some(area) => {
                draw_label(&mut picture, area, dot, name, if front[index] { INK } else { FAINT_INK });
                taken.push(area);
            }
            None => unnamed += 1,
        }
    }
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

/// The nearest place for a name beside its dot where it covers nothing that is taken.
fn free_place(frame: &Frame, taken: &[&Vec<[f64; 4]>], dot: (f64, f64), name: &str) -> Option<[f64; 4]> {
    let free = |area: &[f64; 4]| {
        let inside = area[0] >= frame.corners[0]
            && area[1] >= frame.corners[1]
            && area[2] <= frame.corners[2] + 10.0
            && area[3] <= frame.corners[3];
        inside && taken.iter().all(|taken| taken.iter().all(|other| !overlap(area, other)))
    };
    places(dot, text_width(name, LABEL), LABEL).find(free)
}

fn draw_label(picture: &mut Picture, area: [f64; 4], dot: (f64, f64), name: &str, colour: Colour) {
    // A label that does not touch its dot is joined to it.
    let nearest = (dot.0.clamp(area[0], area[2]), dot.1.clamp(area[1], area[3]));
    if (nearest.0 - dot.0).hypot(nearest.1 - dot.1) > DOT + 6.0 {
        picture.path(vec![dot, nearest], 0.5, FAINT_INK);
    }
    let middle = (f64::midpoint(area[0], area[2]), f64::midpoint(area[1], area[3]));
    picture.text(name, middle, LABEL, Across::Middle, colour);
}

/// Places for a label around a dot, nearest first: right, left, above, below and the corners, in wider rings.
fn places((x, y): (f64, f64), width: f64, height: f64) -> impl Iterator<Item = [f64; 4]> {
    let rings = [DOT + 4.0, 18.0, 34.0, 54.0, 80.0, 110.0];
    rings.into_iter().flat_map(move |ring| {
        let (far_x, far_y) = (ring + width / 2.0, ring + height / 2.0 - 3.0);
        let slant = (ring * 0.7 + width / 2.0, ring * 0.7 + height / 2.0 - 2.0);
        let offsets = [
            (far_x, 0.0),
            (slant.0, -slant.1),
            (0.0, -far_y),
            (-far_x, 0.0),
            (0.0, far_y),
            (slant.0, slant.1),
            (-slant.0, -slant.1),
            (-slant.0, slant.1),
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
