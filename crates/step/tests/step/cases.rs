//! Random steps of every kind, and small helpers to build exact ones.

use pipestep_engine::{Bytes, Duration};
use pipestep_schedule::{Chunks, Options, Plan, Shape, find};
use pipestep_step::{Arbitration, Costs, Held, Inputs, Links, Message, RankCost, StageCost, UpdateAfter};
use proptest::prelude::*;

pub(crate) const MS: u64 = 1_000_000;

/// A message of so many nanoseconds and bytes.
pub(crate) fn message(nanos: u64, bytes: u64) -> Message {
    Message { time: Duration::from_nanos(nanos), bytes: Bytes::new(bytes) }
}

/// A stage with a whole backward of `backward` ns of which half is `W`.
pub(crate) fn stage(forward: u64, backward: u64, saved: u64, sent: Message) -> StageCost {
    StageCost {
        forward: Duration::from_nanos(forward),
        backward: Duration::from_nanos(backward),
        input_gradient: Duration::from_nanos(backward - backward / 2),
        weight_gradient: Duration::from_nanos(backward / 2),
        layers: 1,
        saved: Bytes::new(saved),
        activation: sent,
        gradient: Message { bytes: Bytes::new(2 * sent.bytes.get()), ..sent },
        ..StageCost::default()
    }
}

/// The fixed plan of a schedule in the registry, if it takes the shape.
pub(crate) fn orders(name: &str, inputs: &Inputs) -> Option<pipestep_schedule::Orders> {
    let schedule = find(name).expect("the schedule is in the registry");
    let weights = inputs.costs().weights(inputs.shape(), None);
    match schedule.plan(inputs.shape(), &weights, &Options::default()) {
        Ok(Plan::Fixed(orders)) => Some(orders),
        _ => None,
    }
}

/// A random step: schedule, shape, costs, links. Times are small so that many instants coincide, and some are
/// zero; some are huge.
pub(crate) fn any_step() -> impl Strategy<Value = (&'static str, Inputs)> {
    let names: Vec<&'static str> =
        pipestep_schedule::all().iter().map(|schedule| schedule.entry().name).collect();
    let shapes = (prop::sample::select(names), 1_u64..6, 1_u64..4, 1_u64..12);
    shapes
        .prop_filter_map("the schedule takes this shape", |(name, ranks, chunks, micro_batches)| {
            let entry = find(name)?.entry();
            let chunks = match entry.chunks {
                Chunks::Exactly(count) => u64::from(count),
                Chunks::Any => chunks,
                Chunks::Even => 2 * chunks,
            };
            let shape = Shape::new(ranks, chunks, micro_batches, entry.placement).ok()?;
            Some((name, shape))
        })
        .prop_flat_map(|(name, shape)| (Just(name), any_inputs(shape)))
}

fn any_inputs(shape: Shape) -> impl Strategy<Value = Inputs> {
    let stages = prop::collection::vec(any_stage(), shape.stages());
    let ranks = prop::collection::vec(any_rank(), shape.ranks());
    let scale = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec((1_u64..5, 1_u64..4), shape.micro_batches()),
    ];
    let links =
        prop_oneof![3 => Just(Links::Directional), 1 => Just(Links::Shared), 1 => Just(Links::Unlimited)];
    let arbitration = prop_oneof![Just(Arbitration::Fifo), Just(Arbitration::ByStage)];
    let update = prop_oneof![Just(UpdateAfter::All), Just(UpdateAfter::Own)];
    let costs = (stages, ranks, small(), scale);
    (costs, links, arbitration, update).prop_map(
        move |((stages, ranks, setup, scale), links, arbitration, update)| {
            let setup = Duration::from_nanos(setup);
            let costs = Costs { stages, ranks, setup, micro_batch_scale: scale };
            let mut inputs =
                Inputs::new(shape.clone(), costs).expect("random costs are far below the limits");
            (inputs.links, inputs.arbitration, inputs.update_after) = (links, arbitration, update);
            inputs
        },
    )
}

fn small() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0_u64), 6 => 1_u64..12, 1 => Just(1_000_000_000_000)]
}

fn any_message() -> impl Strategy<Value = Message> {
    (small(), 0_u64..5).prop_map(|(time, bytes)| message(time, bytes))
}

fn any_stage() -> impl Strategy<Value = StageCost> {
    let times = (small(), small(), small());
    (times, 1_u64..4, 0_u64..50, -10_i64..50, 0_u64..9, any_message(), any_message()).prop_map(
        |((forward, input, weight), layers, saved, released, workspace, activation, gradient)| StageCost {
            forward: Duration::from_nanos(forward),
            backward: Duration::from_nanos(input + weight),
            input_gradient: Duration::from_nanos(input),
            weight_gradient: Duration::from_nanos(weight),
            layers,
            saved: Bytes::new(saved),
            released_at_input_gradient: released.min(saved as i64),
            workspace: Bytes::new(workspace),
            activation,
            gradient,
        },
    )
}

fn any_rank() -> impl Strategy<Value = RankCost> {
    (small(), prop::option::of(small()), 0_u64..9).prop_map(|(update, pair, weights)| RankCost {
        update: Duration::from_nanos(update),
        overlapped_pair: pair.map(Duration::from_nanos),
        held: Held { weights: Bytes::new(weights), ..Held::default() },
    })
}
