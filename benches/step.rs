//! How fast a step is simulated, against the floor measured in the same run.
//!
//! One event is one forward, one backward or one message. The *floor* is one longest-path pass over an order that
//! is already known to be topological: flat arrays, no queue, no record, and one counter of saved bytes a rank with
//! its peak. Every variant gives the same makespan.
//!
//! `cargo bench --bench step` prints criterion's times; `cargo bench --bench step -- --ratios` prints one table
//! of ns per event and ratios to the floor (best of interleaved batches, which a noisy machine needs).

#![expect(clippy::print_stdout, reason = "its table is what a bench is for")]

mod case;
#[path = "case/scatter.rs"]
mod scatter;

use std::cell::RefCell;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use pipestep::engine::{NoCurve, NoRecord, Recorder, Timeline, Totals, Tracks};
use pipestep::schedule::{Kind, Orders};
use pipestep::step::{
    Dataflow, Engine, FifoStep, Inputs, Jitter, Levels, MessageMode, MessageSink, Replicas, SideBySide,
    run_orders,
};
use rustix::time::{ClockId, clock_gettime};

use self::case::Size;
use self::scatter::jitter;

/// The sizes of `docs/performance.md`: ranks, micro-batches, chunks.
const SIZES: [Size; 4] = [(8, 64, 1), (16, 1024, 1), (16, 256, 4), (64, 4096, 1)];

/// One step with jittered costs, so that few events tie.
struct Case<'a> {
    name: String,
    inputs: &'a Inputs,
    orders: Orders,
    events: u64,
    floor: Floor,
    makespan: u64,
    replicas: Replicas<'a>,
    /// Eight replicas with their lengths.
    eight: RefCell<SideBySide<'a>>,
}

impl<'a> Case<'a> {
    fn new(size: Size, inputs: &'a Inputs, jitter: &'a Jitter) -> Self {
        let orders = case::build_orders(inputs);
        let events = orders.all().len() as u64 + 2 * inputs.shape().messages();
        let floor = Floor::new(inputs, &orders);
        let makespan = floor.run(&mut FloorMemory::default());
        let replicas = Replicas::new(inputs, jitter).expect("the lists fit");
        let mut eight = side_by_side(replicas, &orders);
        eight.draw(0);
        let name = name(size);
        Self { name, inputs, orders, events, floor, makespan, replicas, eight: RefCell::new(eight) }
    }
}

fn name((ranks, micro_batches, chunks): Size) -> String {
    format!("p{ranks} m{micro_batches} v{chunks}")
}

fn side_by_side<'a>(replicas: Replicas<'a>, orders: &Orders) -> SideBySide<'a> {
    let eight = SideBySide::new(replicas, orders).expect("the orders run");
    eight.expect("directional links, first come first served, no pairs")
}

/// The floor: a topological order of operations over flat arrays.
struct Floor {
    /// Per operation in a topological order: its rank, input slot, output slot and row.
    steps: Vec<FloorStep>,
    rows: Vec<FloorRow>,
    slots: usize,
    ranks: usize,
}

#[derive(Clone, Copy)]
struct FloorStep {
    row: u16,
    micro_batch: u16,
}

#[derive(Clone, Copy)]
struct FloorRow {
    duration: u64,
    message: u64,
    rank: u32,
    input: u32,
    output: u32,
    link: u32,
    /// Saved bytes: added at the start, so negative (and late by one operation) for a backward.
    saved: i64,
}

impl Floor {
    /// Slot 0 is always ready (0) and slot 1 takes results that nobody needs.
    fn new(inputs: &Inputs, orders: &Orders) -> Self {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let (stages, m) = (shape.stages() as u32, shape.micro_batches() as u32);
        let slot = |gradient: u32, stage: u32| 2 * m + (gradient * stages + stage) * m;
        let row = |gradient: u32, stage: u32| {
            let s = pipestep::schedule::Stage(stage as u16);
            let (cost, rank) = (&costs.stages[stage as usize], shape.rank_of(s));
            let (duration, sent, from, to) = if gradient == 0 {
                (cost.forward, cost.activation.time, shape.previous(s), shape.next(s))
            } else {
                (cost.backward, cost.gradient.time, shape.next(s), shape.previous(s))
            };
            FloorRow {
                duration: duration.as_nanos(),
                message: to.map_or(0, |_| sent.as_nanos()),
                rank: u32::from(rank.0),
                input: from.map_or(0, |_| slot(gradient, stage)),
                output: to.map_or(m, |to| slot(gradient, u32::from(to.0))),
                saved: if gradient == 0 { 1 } else { -1 } * cost.saved.get() as i64,
                link: to.map_or(0, |to| {
                    1 + u32::from(rank.0) * shape.ranks() as u32 + u32::from(shape.rank_of(to).0)
                }),
            }
        };
        let rows = (0..2).flat_map(|g| (0..stages).map(move |s| (g, s))).map(|(g, s)| row(g, s)).collect();
        let mut ops = Timeline::new(orders.all().len());
        run_orders(inputs, orders, MessageMode::Folded, &mut ops, &mut NoRecord).expect("the orders run");
        let mut by_start: Vec<usize> = (0..orders.all().len()).collect();
        by_start.sort_by_key(|&place| (ops.get(place).start, place));
        let step = |place: usize| {
            let op = orders.all()[place];
            let gradient = u16::from(op.kind != Kind::Forward);
            FloorStep { row: gradient * stages as u16 + op.stage.0, micro_batch: op.micro_batch.0 as u16 }
        };
        let steps = by_start.into_iter().map(step).collect();
        Self { steps, rows, slots: (2 * m + 2 * stages * m) as usize, ranks: shape.ranks() }
    }

    /// The makespan.
    fn run(&self, memory: &mut FloorMemory) -> u64 {
        memory.slots.clear();
        memory.slots.resize(self.slots, 0);
        memory.free.clear();
        memory.free.resize(self.ranks, 0);
        memory.held.clear();
        memory.held.resize(self.ranks, (0, 0));
        memory.links.clear();
        memory.links.resize(1 + self.ranks * self.ranks, 0);
        for step in &self.steps {
            let row = &self.rows[step.row as usize];
            let mb = u32::from(step.micro_batch);
            let start = memory.free[row.rank as usize].max(memory.slots[(row.input + mb) as usize]);
            let end = start + row.duration;
            let (level, peak) = &mut memory.held[row.rank as usize];
            *level += row.saved;
            *peak = (*peak).max(*level);
            memory.free[row.rank as usize] = end;
            let arrival = end.max(memory.links[row.link as usize]) + row.message;
            memory.links[row.link as usize] = arrival;
            memory.slots[(row.output + mb) as usize] = arrival;
            memory.slots[mb as usize] = 0;
        }
        black_box(&memory.held);
        memory.free.iter().copied().max().unwrap_or(0)
    }
}

#[derive(Default)]
struct FloorMemory {
    slots: Vec<u64>,
    free: Vec<u64>,
    links: Vec<u64>,
    held: Vec<(i64, i64)>,
}

/// What is measured, each returning the makespan in ns.
type Variant = (&'static str, Box<dyn FnMut(&Case<'_>) -> u64>);

fn variants() -> Vec<Variant> {
    let mut floor = FloorMemory::default();
    let [mut known, mut built, mut skipping, mut peaks] = [(); 4].map(|()| Dataflow::new());
    let [mut plain, mut recorded, mut whole] = [(); 3].map(|()| Engine::new());
    let mut highest = Levels::<NoCurve>::new();
    let (mut spans, mut spans_too, mut curves) =
        (Spans::default(), Spans::default(), Levels::<Totals>::new());
    vec![
        ("floor", Box::new(move |case| case.floor.run(&mut floor))),
        ("dataflow, order known", Box::new(move |case| dataflow(&mut known, case, &case.orders))),
        (
            "A: order built, times",
            Box::new(move |case| dataflow(&mut built, case, &case::build_orders(case.inputs))),
        ),
        (
            "A: periods skipped, times",
            Box::new(move |case| {
                let times = skipping.times(fifo(case), &case::build_orders(case.inputs));
                times.expect("the orders run").makespan.as_nanos()
            }),
        ),
        (
            "A: order built, exact peaks",
            Box::new(move |case| {
                let (orders, nothing) = (case::build_orders(case.inputs), (&mut NoRecord, &mut NoRecord));
                let times = peaks.run_with_levels(fifo(case), &orders, nothing, &mut highest);
                times.expect("the orders run").makespan.as_nanos()
            }),
        ),
        ("C: 8 jittered replicas, each", Box::new(run_eight)),
        ("lengths for C, each", Box::new(draw_eight)),
        ("orders read for C, once", Box::new(prepare_eight)),
        (
            "events, times",
            Box::new(move |case| events(&mut plain, case, MessageMode::Folded, &mut NoRecord, &mut NoRecord)),
        ),
        (
            "events, spans",
            Box::new(move |case| {
                let Spans { ops, messages } = spans.of(case);
                events(&mut recorded, case, MessageMode::Folded, ops, messages)
            }),
        ),
        (
            "B: events, spans and memory",
            Box::new(move |case| {
                let Spans { ops, messages } = spans_too.of(case);
                let (how, spans) = (MessageMode::Folded, (ops, messages));
                let times = whole.run_with_levels(case.inputs, &case.orders, how, spans, &mut curves);
                times.expect("the orders run").makespan.as_nanos()
            }),
        ),
        (
            "events, messages as events",
            Box::new(|case| {
                let mut engine = Engine::new();
                events(&mut engine, case, MessageMode::Events, &mut NoRecord, &mut NoRecord)
            }),
        ),
    ]
}

/// Eight runs with lengths of their own go through the pass side by side. Not in it: the draws, made for every eight
/// runs, and what is found out from the orders alone, once for all runs; the next two are those.
fn run_eight(case: &Case<'_>) -> u64 {
    black_box(case.eight.borrow().run().expect("every length is above zero"));
    case.makespan
}

fn draw_eight(case: &Case<'_>) -> u64 {
    case.eight.borrow_mut().draw(black_box(0));
    case.makespan
}

fn prepare_eight(case: &Case<'_>) -> u64 {
    black_box(side_by_side(case.replicas, &case.orders));
    case.makespan
}

fn fifo<'a>(case: &Case<'a>) -> FifoStep<'a> {
    FifoStep::new(case.inputs).expect("directional links, first come first served")
}

fn dataflow(pass: &mut Dataflow, case: &Case<'_>, orders: &Orders) -> u64 {
    let times = pass.run(fifo(case), orders, &mut NoRecord, &mut NoRecord);
    times.expect("the orders run").makespan.as_nanos()
}

fn events<R: Recorder, M: MessageSink>(
    engine: &mut Engine,
    case: &Case<'_>,
    how: MessageMode,
    ops: &mut R,
    messages: &mut M,
) -> u64 {
    let times = engine.run(case.inputs, &case.orders, how, ops, messages);
    times.expect("the orders run").makespan.as_nanos()
}

/// Every span of a step; the memory is kept from one run to the next.
#[derive(Default)]
struct Spans {
    ops: Tracks,
    messages: Tracks,
}

impl Spans {
    fn of(&mut self, case: &Case<'_>) -> &mut Self {
        self.ops.reuse(case.orders.all().len());
        self.messages.reuse(case.orders.all().len());
        self
    }
}

/// CPU time of this thread: on a machine with other work, wall time measures that work too.
fn cpu_nanos() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Prints ns per event and ratios to the floor: variants in turn, the best of each batch, the median of rounds.
fn print_ratios() {
    let mut variants = variants();
    for size in SIZES {
        let (inputs, jitter) = (case::inputs(size), jitter(size.0 as usize));
        let case = Case::new(size, &inputs, &jitter);
        let repeat = (400_000 / case.events).clamp(1, 200) as usize;
        let expected = variants[0].1(&case);
        let mut best = vec![Vec::new(); variants.len()];
        for _round in 0..5 {
            let mut round = vec![f64::INFINITY; variants.len()];
            for _batch in 0..12 {
                for (index, (name, run)) in variants.iter_mut().enumerate() {
                    let begin = cpu_nanos();
                    for _ in 0..repeat {
                        assert_eq!(black_box(run(&case)), expected, "{name}");
                    }
                    let replicas = if name.ends_with("each") { SideBySide::LANES as u64 } else { 1 };
                    let events = repeat as u64 * case.events * replicas;
                    let nanos = (cpu_nanos() - begin) as f64 / events as f64;
                    round[index] = round[index].min(nanos);
                }
            }
            best.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
        let medians: Vec<f64> = best
            .iter_mut()
            .map(|all| {
                all.sort_by(f64::total_cmp);
                all[2]
            })
            .collect();
        println!("{} ({} events)", case.name, case.events);
        for ((name, _), nanos) in variants.iter().zip(&medians) {
            println!("  {name:28} {nanos:7.2} ns/event  {:6.2} x floor", nanos / medians[0]);
        }
    }
}

/// Prints how long the largest step takes if its stages are equal, so that nearly all of it is skipped: order built,
/// times alone, the best of many.
fn print_equal_stages() {
    let size = SIZES[3];
    let jittered = case::inputs(size);
    let (shape, mut costs) = (jittered.shape().clone(), jittered.costs().clone());
    let first = costs.stages[0];
    costs.stages.fill(first);
    let inputs = Inputs::new(shape, costs).expect("small costs");
    let step = FifoStep::new(&inputs).expect("directional links, first come first served");
    let mut pass = Dataflow::new();
    let whole =
        pass.run(step, &case::build_orders(&inputs), &mut NoRecord, &mut NoRecord).expect("the orders run");
    let mut best = u64::MAX;
    for _ in 0..50 {
        let begin = cpu_nanos();
        let times = pass.times(step, &case::build_orders(&inputs)).expect("the orders run");
        best = best.min(cpu_nanos() - begin);
        assert_eq!(times, whole, "what is skipped changes nothing");
    }
    println!("{}, equal stages: {} us", name(size), best / 1_000);
}

fn criterion_benches(criterion: &mut Criterion) {
    for size in SIZES {
        let (inputs, jitter) = (case::inputs(size), jitter(size.0 as usize));
        let case = Case::new(size, &inputs, &jitter);
        let mut group = criterion.benchmark_group(&case.name);
        group.throughput(Throughput::Elements(case.events)).sample_size(10);
        for (name, mut run) in variants() {
            group.bench_function(name, |bencher| {
                bencher.iter_batched(|| (), |()| run(&case), BatchSize::PerIteration);
            });
        }
        group.finish();
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "--ratios") {
        print_ratios();
        print_equal_stages();
    } else {
        let mut criterion = Criterion::default().configure_from_args();
        criterion_benches(&mut criterion);
        criterion.final_summary();
    }
}
