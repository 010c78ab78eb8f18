//! Steps for this crate's tests: the headline's costs under any schedule of the registry and any shape.

use pipestep_engine::{Bytes, Duration};
use pipestep_schedule::{Op, Options, Orders, Placement, Plan, Shape, Weights};
use pipestep_step::{Costs, Inputs, Links, Message, Outcome, RankCost, StageCost, simulate};

use crate::{Labels, StepView};

/// A simulated step with its labels.
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) shape: Shape,
    pub(crate) inputs: Inputs,
    pub(crate) outcome: Outcome,
}

pub(crate) const MS: u64 = 1_000_000;
/// What 9 layers of Qwen3-8B keep for one micro-batch of 128 tokens, and what the last stage adds for its head.
const SAVED: [u64; 2] = [240_915_456, 79_888_896];

impl Sample {
    /// Forward 10 ms, backward 20 ms (half of it for weights), transfers and update 1 ms.
    pub(crate) fn new(schedule: &str, ranks: u64, chunks: u64, micro_batches: u64) -> Self {
        Self::stretched(schedule, [ranks, chunks, micro_batches], 1)
    }

    /// The same with everything `factor` times as long.
    pub(crate) fn stretched(schedule: &str, shape: [u64; 3], factor: u64) -> Self {
        Self::with(schedule, shape, |shape| costs(shape, MS * factor), Links::Directional)
    }

    /// Unlimited links on which a message takes longer than an operation.
    pub(crate) fn unlimited(schedule: &str, shape: [u64; 3]) -> Self {
        let slow = |shape: &Shape| {
            let mut costs = costs(shape, MS);
            for stage in &mut costs.stages {
                stage.activation.time = Duration::from_nanos(35 * MS);
            }
            costs
        };
        Self::with(schedule, shape, slow, Links::Unlimited)
    }

    /// A handmade order on one stage a rank, with an overlapped pair of 30 ms.
    pub(crate) fn ordered(micro_batches: u64, lists: &[&str]) -> Self {
        let shape = Shape::new(lists.len() as u64, 1, micro_batches, Placement::Loop).unwrap();
        let op = |text: &str| match text.strip_suffix('+') {
            Some(first) => first.parse::<Op>().unwrap().joined(),
            None => text.parse().unwrap(),
        };
        let orders = Orders::from_lists(lists.iter().map(|list| list.split(' ').map(op)));
        let mut costs = costs(&shape, MS);
        for rank in &mut costs.ranks {
            rank.overlapped_pair = Some(Duration::from_nanos(30 * MS));
        }
        let inputs = Inputs::new(shape, costs).unwrap();
        Self::run("by hand", &inputs, Plan::Fixed(orders))
    }

    fn with(
        schedule: &str,
        [ranks, chunks, micro_batches]: [u64; 3],
        costs: impl Fn(&Shape) -> Costs,
        links: Links,
    ) -> Self {
        let found = pipestep_schedule::find(schedule).expect("a schedule of the registry");
        let shape = Shape::new(ranks, chunks, micro_batches, found.entry().placement).unwrap();
        let plan = found.plan(&shape, &Weights::unit(&shape), &Options::default()).unwrap();
        let costs = costs(&shape);
        let mut inputs = Inputs::new(shape, costs).unwrap();
        inputs.links = links;
        Self::run(schedule, &inputs, plan)
    }

    fn run(schedule: &str, inputs: &Inputs, plan: Plan) -> Self {
        let labels = Labels {
            name: "Qwen3-8B, 128 tokens".into(),
            schedule: schedule.into(),
            budgets: vec![Bytes::new(1_000_000_000); inputs.shape().ranks()],
        };
        let (shape, outcome) = (inputs.shape().clone(), simulate(inputs, plan).unwrap());
        Self { labels, shape, inputs: inputs.clone(), outcome }
    }

    pub(crate) fn view(&self) -> StepView<'_> {
        StepView { labels: &self.labels, shape: &self.shape, summary: &self.outcome.summary }
    }
}

fn costs(shape: &Shape, ms: u64) -> Costs {
    let chunks = shape.chunks() as u64;
    let part = |whole: u64| Duration::from_nanos(whole * ms / chunks);
    let message = |bytes| Message { time: Duration::from_nanos(ms), bytes: Bytes::new(bytes) };
    let stage = |stage: usize| StageCost {
        forward: part(10),
        backward: part(20),
        input_gradient: part(10),
        weight_gradient: part(10),
        layers: 1,
        saved: Bytes::new(SAVED[0] / chunks + if stage + 1 == shape.stages() { SAVED[1] } else { 0 }),
        activation: message(1 << 20),
        gradient: message(1 << 21),
        ..StageCost::default()
    };
    let rank = RankCost { update: Duration::from_nanos(ms), ..RankCost::default() };
    Costs {
        stages: (0..shape.stages()).map(stage).collect(),
        ranks: vec![rank; shape.ranks()],
        ..Costs::default()
    }
}
