//! The step that the benches simulate, and that `peers/` hands to other programs: the same lengths everywhere.

use pipestep::engine::{Bytes, Duration};
use pipestep::schedule::{Options, Orders, Plan, Schedule, Shape, find};
use pipestep::step::{Costs, Inputs, Message, RankCost, StageCost};

/// The ranks, micro-batches and chunks of a step. One chunk runs 1F1B, several interleaved 1F1B.
pub(crate) type Size = (u64, u64, u64);

/// The shape and costs of a step of this size.
pub(crate) fn inputs((ranks, micro_batches, chunks): Size) -> Inputs {
    let placement = schedule(chunks).entry().placement;
    let shape = Shape::new(ranks, chunks, micro_batches, placement).expect("a legal shape");
    let costs = costs(&shape, chunks);
    Inputs::new(shape, costs).expect("small costs")
}

/// Each rank's order, made from scratch.
pub(crate) fn build_orders(inputs: &Inputs) -> Orders {
    let (shape, weights) = (inputs.shape(), inputs.costs().weights(inputs.shape(), None));
    match schedule(shape.chunks() as u64).plan(shape, &weights, &Options::default()) {
        Ok(Plan::Fixed(orders)) => orders,
        _ => unreachable!("both schedules are fixed and take these shapes"),
    }
}

fn schedule(chunks: u64) -> &'static dyn Schedule {
    find(if chunks == 1 { "1f1b" } else { "interleaved" }).expect("it is in the registry")
}

/// 10 and 20 ms over the chunks, messages of 1.2 and 1.3 ms, each with up to 0.1 ms of jitter, so that few events
/// tie; activations of 12 MB with buffers of 1 and 2 MB.
fn costs(shape: &Shape, chunks: u64) -> Costs {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut jitter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 100_000
    };
    let mut time = |base: u64| Duration::from_nanos(base + jitter());
    let stages = (0..shape.stages()).map(|_| StageCost {
        forward: time(10_000_000 / chunks),
        backward: time(20_000_000 / chunks),
        input_gradient: time(10_000_000 / chunks),
        layers: 1,
        saved: Bytes::new(12_000_000 / chunks),
        activation: Message { time: time(1_200_000), bytes: Bytes::new(1_000_000) },
        gradient: Message { time: time(1_300_000), bytes: Bytes::new(2_000_000) },
        ..StageCost::default()
    });
    Costs { stages: stages.collect(), ranks: vec![RankCost::default(); shape.ranks()], ..Costs::default() }
}
