//! What is needed to simulate one step: where its order comes from, its shape, costs and rules.

use pipestep_engine::Bytes;
use pipestep_schedule::csv::CommsOrders;
use pipestep_schedule::{Options, Orders, Plan, Refusal, Schedule, Weights};
use pipestep_step::Inputs;

use crate::diagnostic::Span;
use crate::jitter::{Efficiency, Jitter};

/// One step as it is meant.
#[derive(Debug)]
pub struct StepScenario {
    /// What orders the operations.
    pub order: OrderSource,
    /// Shape, costs and rules.
    pub inputs: Inputs,
    /// What each rank may hold, if the file says.
    pub budget: Option<Vec<Bytes>>,
    /// The most saved bytes that `greedy` may use on each rank: `[memory] limit`, or the
    /// budget.
    pub limit: Option<Vec<Bytes>>,
    /// Layers of each stage, where they are known.
    pub layers: Option<Vec<u64>>,
    /// What each layer takes, where lengths are given by layer; for balancing stages.
    pub layer_costs: Option<LayerCosts>,
    /// `pipeline.global_batch`, where micro-batches are cut from it.
    pub global_batch: Option<u64>,
    /// Sequences in one micro-batch, where a model is given.
    pub sequences_per_micro_batch: Option<u64>,
    /// Tokens in one micro-batch, where a model is given.
    pub tokens_per_micro_batch: Option<u64>,
    /// Data-parallel copies of the pipeline, each with its own micro-batches.
    pub data_parallel: u32,
    /// How its lengths scatter, if the file says; slow ranks and links are in the costs.
    pub jitter: Option<Jitter>,
    /// How its lengths depend on the size of a micro-batch, if the file says; the costs follow it.
    pub efficiency: Option<Efficiency>,
    /// Where the order is named, for refusals.
    pub(crate) order_span: Span,
}

/// Forward and backward of one micro-batch together, in ns, layer by layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerCosts {
    /// Of each layer.
    pub layers: Vec<u64>,
    /// What the embedding adds before the first.
    pub embedding: u64,
    /// What the output layer and the loss add behind the last.
    pub head: u64,
}

/// What orders the operations of a step.
pub enum OrderSource {
    /// A schedule of the registry.
    Schedule {
        /// The schedule.
        schedule: &'static dyn Schedule,
        /// The options that were set for it.
        options: Options,
    },
    /// A PyTorch schedule file.
    File {
        /// The file as the scenario names it.
        name: String,
        /// Each rank's operations.
        orders: Orders,
        /// Posts of sends and receives, waits and parameters, if the file has any (`compute_comms`).
        comms: Option<CommsOrders>,
    },
}

impl std::fmt::Debug for OrderSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Schedule { schedule, options } => f
                .debug_struct("Schedule")
                .field("schedule", &schedule.entry().name)
                .field("options", options)
                .finish(),
            Self::File { name, comms, .. } => f
                .debug_struct("File")
                .field("name", name)
                .field("comms", &comms.is_some())
                .finish_non_exhaustive(),
        }
    }
}

impl OrderSource {
    /// The schedule, where it is one of the registry.
    pub fn schedule(&self) -> Option<&'static dyn Schedule> {
        match self {
            Self::Schedule { schedule, .. } => Some(*schedule),
            Self::File { .. } => None,
        }
    }

    /// What was set for the schedule; nothing where the order is not that of a schedule.
    pub fn options(&self) -> Options {
        match self {
            Self::Schedule { options, .. } => options.clone(),
            Self::File { .. } => Options::default(),
        }
    }

    /// What it is called in results: the schedule's name, or the file's.
    pub fn name(&self) -> &str {
        match self {
            Self::Schedule { schedule, .. } => schedule.entry().name,
            Self::File { name, .. } => name,
        }
    }
}

impl StepScenario {
    /// Tokens of one optimizer step, all data-parallel copies together, where a model is given.
    pub fn tokens(&self) -> Option<u64> {
        let count = self.inputs.shape().micro_batches() as u64;
        self.tokens_per_micro_batch?.checked_mul(count)?.checked_mul(u64::from(self.data_parallel))
    }

    /// Each rank's order: what the schedule makes of the shape and, if it looks at them, the costs.
    ///
    /// # Errors
    /// The schedule's [`Refusal`]; [`crate::Scenario::refused`] shows it with its place in the file.
    pub fn plan(&self) -> Result<Plan, Refusal> {
        match &self.order {
            OrderSource::File { orders, .. } => Ok(Plan::Fixed(orders.clone())),
            OrderSource::Schedule { schedule, options } => {
                let shape = self.inputs.shape();
                let weights = if schedule.entry().uses_weights {
                    let limit = self.limit.as_ref();
                    let limit = limit.map(|limit| limit.iter().map(|bytes| bytes.get()).collect());
                    self.inputs.costs().weights(shape, limit)
                } else {
                    Weights::default()
                };
                schedule.plan(shape, &weights, options)
            }
        }
    }
}
