//! Which rows the picture of rounds has, and what lies in each: engines, scoring pools, the trainer.
//!
//! A slot or a worker has a lane of its own while there are few; beyond that a row shows how many of them are
//! busy, and engines share rows.

use pipestep_rl::{RlInputs, Row, Span};

use super::paints::Work;
use crate::lane::{Segment, Window};

/// More slots (of all engines) or workers (of a pool) than these share a row.
const LANES: (u32, u32) = (40, 8);
/// Rows of engines at most.
const ENGINE_ROWS: u32 = 20;
/// Heights in points: of a lane, of all slots together, of a shared row at least and at most.
const LANE: (f64, f64) = (6.0, 16.0);
const SLOTS_TOGETHER: f64 = 420.0;
const SHARED: (f64, f64) = (14.0, 40.0);
const TRAINER: f64 = 30.0;

/// A row with what lies in it.
#[derive(Clone, Debug)]
pub(super) struct RowPlan {
    pub(super) label: String,
    pub(super) height: f64,
    pub(super) content: Content,
    /// Of engines in this row, the place among them: what holds a whole engine, such as weights on their way.
    pub(super) whole: Vec<(u32, Segment)>,
    /// How many engines the row stands for; 1 for any other.
    pub(super) engines: u32,
}

/// How a row shows what lies in it.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// One lane above the other.
    Lanes(Vec<Vec<Segment>>),
    /// How many of so many servers are busy.
    Shared { servers: u64, segments: Vec<Segment> },
}

/// The rows from top to bottom, and what holds everything at once.
pub(super) fn rows(inputs: &RlInputs, spans: &[Span], window: &Window) -> (Vec<RowPlan>, Vec<Segment>) {
    let mut plans = Plans::new(inputs);
    let mut everything = Vec::new();
    for span in spans {
        let (from, to) = (span.interval.start.as_nanos(), span.interval.end.as_nanos());
        if !window.meets(from, to) {
            continue;
        }
        let segment = Segment { from, to, paint: Work::of(span.kind) as usize };
        match span.row {
            Row::Slot { engine, slot } => {
                let (row, _) = plans.engine(engine);
                plans.rows[row].put(slot, segment);
            }
            Row::Engine(engine) => {
                let (row, place) = plans.engine(engine);
                plans.rows[row].whole.push((place, segment));
            }
            Row::Worker { pool, worker } => {
                let row = plans.first_pool + pool as usize;
                plans.rows[row].put(worker, segment);
            }
            Row::Trainer => plans.trainer().put(0, segment),
            Row::Everything => everything.push(segment),
        }
    }
    for row in &mut plans.rows {
        row.sort();
    }
    (plans.rows, everything)
}

/// The rows while they fill.
struct Plans {
    rows: Vec<RowPlan>,
    /// Engines in a row.
    together: u32,
    first_pool: usize,
}

impl Plans {
    fn new(inputs: &RlInputs) -> Self {
        let (engines, slots) = (inputs.rollout.engines.max(1), inputs.rollout.slots.max(1));
        let has_lanes = engines.saturating_mul(slots) <= LANES.0;
        let together = if has_lanes { 1 } else { engines.div_ceil(ENGINE_ROWS) };
        let mut rows = Vec::new();
        let count = engines.div_ceil(together);
        for row in 0..count {
            let (first, last) = (row * together, ((row + 1) * together).min(engines) - 1);
            let label = match (engines, first == last) {
                (1, _) => "rollout".to_owned(),
                (_, true) => format!("engine {first}"),
                (_, false) => format!("engines {first}-{last}"),
            };
            let inside = last - first + 1;
            rows.push(if has_lanes {
                let lane = (SLOTS_TOGETHER / f64::from(engines * slots)).clamp(LANE.0, LANE.1);
                RowPlan::lanes(label, slots, lane)
            } else {
                let height = (SLOTS_TOGETHER / f64::from(count)).clamp(SHARED.0, SHARED.1);
                RowPlan::shared(label, u64::from(inside) * u64::from(slots), height, inside)
            });
        }
        let first_pool = rows.len();
        rows.extend(inputs.scoring.iter().map(|pool| {
            if pool.workers <= LANES.1 {
                RowPlan::lanes(pool.name.clone(), pool.workers.max(1), 10.0)
            } else {
                RowPlan::shared(pool.name.clone(), u64::from(pool.workers), SHARED.1, 1)
            }
        }));
        rows.push(RowPlan::lanes("trainer".to_owned(), 1, TRAINER));
        Self { rows, together, first_pool }
    }

    /// The row of an engine, and its place among those in it.
    fn engine(&self, engine: u32) -> (usize, u32) {
        ((engine / self.together) as usize, engine % self.together)
    }

    fn trainer(&mut self) -> &mut RowPlan {
        self.rows.last_mut().expect("the trainer's row is always there")
    }
}

impl RowPlan {
    fn lanes(label: String, lanes: u32, height: f64) -> Self {
        Self {
            label,
            height: height * f64::from(lanes),
            content: Content::Lanes(vec![Vec::new(); lanes as usize]),
            whole: Vec::new(),
            engines: 1,
        }
    }

    fn shared(label: String, servers: u64, height: f64, engines: u32) -> Self {
        let content = Content::Shared { servers, segments: Vec::new() };
        Self { label, height, content, whole: Vec::new(), engines }
    }

    fn put(&mut self, lane: u32, segment: Segment) {
        match &mut self.content {
            Content::Lanes(lanes) => {
                if let Some(lane) = lanes.get_mut(lane as usize) {
                    lane.push(segment);
                }
            }
            Content::Shared { segments, .. } => segments.push(segment),
        }
    }

    /// Spans come in the order in which they ended; lanes are drawn by their start.
    fn sort(&mut self) {
        if let Content::Lanes(lanes) = &mut self.content {
            for lane in lanes {
                lane.sort_by_key(|segment| (segment.from, segment.to));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rl::testing::RlSample;

    #[test]
    fn every_span_lies_in_some_row() {
        for sample in [RlSample::small(), RlSample::large()] {
            let window = Window { time: (0, u64::MAX), across: (0.0, 1_000.0) };
            let (rows, everything) = rows(&sample.inputs, &sample.spans, &window);
            let held = |row: &RowPlan| {
                row.whole.len()
                    + match &row.content {
                        Content::Lanes(lanes) => lanes.iter().map(Vec::len).sum(),
                        Content::Shared { segments, .. } => segments.len(),
                    }
            };
            let count = rows.iter().map(held).sum::<usize>() + everything.len();
            let lasting = sample.spans.iter().filter(|span| span.interval.end > span.interval.start);
            assert_eq!(count, lasting.count());
            assert!(rows.len() <= 24, "{}", rows.len());
        }
    }
}
