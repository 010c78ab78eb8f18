//! How many instructions a step takes: the same on a busy machine as on an idle one, so that 1 % more shows.
//!
//! Counted by callgrind, so it needs valgrind and gungraun's runner; `docs/performance.md` says how to run it. What
//! is counted is one run that finds its memory there from a run before, as in a sweep.

#![expect(missing_docs, clippy::exit, reason = "in what gungraun's macros make")]

mod case;
#[path = "case/scatter.rs"]
mod scatter;

use std::hint::black_box;

use gungraun::{Callgrind, EventKind, prelude::*};
use pipestep::engine::{NoCurve, NoRecord, Time, Totals, Tracks};
use pipestep::schedule::Orders;
use pipestep::step::{Dataflow, Engine, FifoStep, Inputs, Levels, MessageMode, Replicas, SideBySide};

use self::case::Size;
use self::scatter::jitter;

/// 1,920 events.
const ONE_F_ONE_B: Size = (8, 64, 1);
/// 2,016 events.
const INTERLEAVED: Size = (8, 16, 4);

/// A way to run a step, with what it keeps from one run to the next.
trait Way: Default {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time;
}

/// The clock-free pass: times alone.
#[derive(Default)]
struct ClockFree(Dataflow);

impl Way for ClockFree {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let step = FifoStep::new(inputs).expect("directional links, first come first served");
        self.0.run(step, orders, &mut NoRecord, &mut NoRecord).expect("the orders run").makespan
    }
}

/// The clock-free pass: exact peaks, and nothing else kept.
#[derive(Default)]
struct Peaks(Dataflow, Levels<NoCurve>);

impl Way for Peaks {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let step = FifoStep::new(inputs).expect("directional links, first come first served");
        let times = self.0.run_with_levels(step, orders, (&mut NoRecord, &mut NoRecord), &mut self.1);
        times.expect("the orders run").makespan
    }
}

/// The event engine: times alone.
#[derive(Default)]
struct Events(Engine);

impl Way for Events {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let times = self.0.run(inputs, orders, MessageMode::Folded, &mut NoRecord, &mut NoRecord);
        times.expect("the orders run").makespan
    }
}

/// The event engine: the span of every operation and message.
#[derive(Default)]
struct Spans(Engine, [Tracks; 2]);

impl Way for Spans {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let Self(engine, tracks) = self;
        let [ops, messages] = reused(tracks, orders);
        let times = engine.run(inputs, orders, MessageMode::Folded, ops, messages);
        times.expect("the orders run").makespan
    }
}

/// The event engine: every span, and every rank's memory over time.
#[derive(Default)]
struct SpansAndMemory(Engine, [Tracks; 2], Levels<Totals>);

impl Way for SpansAndMemory {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let Self(engine, tracks, levels) = self;
        let [ops, messages] = reused(tracks, orders);
        let times = engine.run_with_levels(inputs, orders, MessageMode::Folded, (ops, messages), levels);
        times.expect("the orders run").makespan
    }
}

fn reused<'a>(tracks: &'a mut [Tracks; 2], orders: &Orders) -> [&'a mut Tracks; 2] {
    for track in &mut *tracks {
        track.reuse(orders.all().len());
    }
    tracks.each_mut()
}

/// The event engine, each message an event.
#[derive(Default)]
struct MessageEvents(Engine);

impl Way for MessageEvents {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let times = self.0.run(inputs, orders, MessageMode::Events, &mut NoRecord, &mut NoRecord);
        times.expect("the orders run").makespan
    }
}

/// Eight runs side by side, their lengths drawn each time.
#[derive(Default)]
struct EightReplicas;

impl Way for EightReplicas {
    fn run(&mut self, inputs: &Inputs, orders: &Orders) -> Time {
        let jitter = jitter(inputs.shape().ranks());
        let replicas = Replicas::new(inputs, &jitter).expect("lists of the right length");
        replicas.of_orders(orders, 0..SideBySide::LANES as u64).expect("the orders run")[0]
    }
}

/// A step that has run once.
struct Warm<W> {
    inputs: Inputs,
    orders: Orders,
    way: W,
}

impl<W: Way> Warm<W> {
    fn new(size: Size) -> Self {
        let inputs = case::inputs(size);
        let orders = case::build_orders(&inputs);
        let mut warm = Self { inputs, orders, way: W::default() };
        warm.run();
        warm
    }

    fn run(&mut self) -> Time {
        self.way.run(black_box(&self.inputs), black_box(&self.orders))
    }
}

/// Counts a run; what it ran on is handed back, so that freeing it is not counted.
macro_rules! count {
    ($($name:ident: $way:ty),+) => {
        $(
            #[library_benchmark(setup = Warm::<$way>::new)]
            #[bench::one_f_one_b(ONE_F_ONE_B)]
            #[bench::interleaved(INTERLEAVED)]
            fn $name(mut warm: Warm<$way>) -> (Time, Warm<$way>) {
                (warm.run(), warm)
            }
        )+
        library_benchmark_group!(name = step, benchmarks = [order, $($name),+]);
    };
}

#[library_benchmark(setup = case::inputs)]
#[bench::one_f_one_b(ONE_F_ONE_B)]
#[bench::interleaved(INTERLEAVED)]
fn order(inputs: Inputs) -> (Orders, Inputs) {
    (case::build_orders(black_box(&inputs)), inputs)
}

count!(
    clock_free: ClockFree,
    peaks: Peaks,
    events: Events,
    spans: Spans,
    spans_and_memory: SpansAndMemory,
    message_events: MessageEvents,
    eight_replicas: EightReplicas
);

main!(
    // Instructions alone: estimates of cache misses would follow the addresses that a run happens to get.
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]).soft_limits([(EventKind::Ir, 1.0)])),
    library_benchmark_groups = step
);
