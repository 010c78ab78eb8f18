//! Times with whole periods skipped against the pass that runs every operation.

use pipestep_engine::NoRecord;
use pipestep_schedule::{Shape, find};
use pipestep_step::{Costs, Dataflow, FifoStep, Inputs, Links, RankCost};
use proptest::prelude::*;

use crate::cases::{any_step, message, orders, stage};

/// Both ways give the same; returns how many operations were skipped.
fn check(pass: &mut Dataflow, inputs: &Inputs, name: &str) -> Option<usize> {
    let (orders, step) = (orders(name, inputs)?, FifoStep::new(inputs)?);
    let whole = pass.run(step, &orders, &mut NoRecord, &mut NoRecord).unwrap();
    assert_eq!(pass.times(step, &orders).unwrap(), whole, "{name}");
    Some(pass.skipped())
}

fn inputs(name: &str, ranks: u64, micro_batches: u64, lengths: &[(u64, u64, u64)]) -> Option<Inputs> {
    let entry = find(name).unwrap().entry();
    let chunks = match entry.chunks {
        pipestep_schedule::Chunks::Exactly(count) => u64::from(count),
        _ => 2,
    };
    let shape = Shape::new(ranks, chunks, micro_batches, entry.placement).ok()?;
    let stage_of = |at: usize| {
        let (forward, backward, transfer) = lengths[at % lengths.len()];
        stage(forward, backward, 70, message(transfer, 9))
    };
    let costs = Costs {
        stages: (0..shape.stages()).map(stage_of).collect(),
        ranks: vec![RankCost::default(); shape.ranks()],
        ..Costs::default()
    };
    Some(Inputs::new(shape, costs).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_short_step_takes_the_same_time_by_the_shortest_way((name, inputs) in any_step()) {
        check(&mut Dataflow::new(), &inputs, name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, ..ProptestConfig::default() })]

    #[test]
    fn a_long_step_takes_the_same_time_by_the_shortest_way(
        name in prop::sample::select(pipestep_schedule::all().iter().map(|s| s.entry().name).collect::<Vec<_>>()),
        ranks in 1_u64..7,
        rounds in 1_u64..80,
        rest in 0_u64..6,
        lengths in prop::collection::vec((1_u64..12, 1_u64..24, 0_u64..8), 1..8),
        unlimited in any::<bool>(),
    ) {
        let mut pass = Dataflow::new();
        for more in [0, ranks, 1] {
            let Some(mut inputs) = inputs(name, ranks, rounds * ranks + rest % ranks + more, &lengths) else { continue };
            if unlimited {
                inputs.links = Links::Unlimited;
            }
            check(&mut pass, &inputs, name);
        }
    }
}

#[test]
fn most_of_a_long_step_is_skipped() {
    let equal = [(10, 20, 1)];
    for (name, most) in
        [("1f1b", 0.1), ("fill-drain", 0.2), ("interleaved", 0.2), ("zb-h1", 0.2), ("dualpipe-v", 0.2)]
    {
        let inputs = inputs(name, 8, 2_048, &equal).unwrap();
        let all = orders(name, &inputs).unwrap().all().len();
        let skipped = check(&mut Dataflow::new(), &inputs, name).unwrap();
        assert!((all - skipped) as f64 <= most * all as f64, "{name} ran {} of {all}", all - skipped);
    }
}
