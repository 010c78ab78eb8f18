//! What operations change in their rank's memory: plain numbers of bytes for each (kind, stage).
//!
//! | account | on | from | to |
//! | --- | --- | --- | --- |
//! | activations | the stage's rank | start of F | end of B, or of W (a part at the end of I) |
//! | workspace | the stage's rank | start of B or I | end of B or W |
//! | send buffers | sender | end of the producer | end of the message |
//! | receive buffers | receiver | start of the message | start of the consumer |
//! | weights, gradients, optimizer, buckets | each rank | start of the step | never freed |

use pipestep_schedule::{Kind, MicroBatch, Op, Rank, Stage};

use crate::rows::Rows;
use crate::{ACCOUNTS, Account, Inputs, StageCost};

/// What one operation changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpBytes {
    /// Activations that its start adds.
    pub(crate) kept: i64,
    /// Workspace that its start adds.
    pub(crate) used: i64,
    /// The receive buffer that its start frees.
    pub(crate) consumed: i64,
    /// Activations that its end frees.
    pub(crate) freed: i64,
    /// Workspace that its end frees.
    pub(crate) unused: i64,
    /// The size of its message: the send buffer that its end takes, and the receive buffer at the other side.
    pub(crate) sent: i64,
}

impl OpBytes {
    /// By how much its start changes the sum of all accounts.
    pub(crate) const fn at_start(&self) -> i64 {
        self.kept + self.used - self.consumed
    }

    /// By how much its end does.
    pub(crate) const fn at_end(&self) -> i64 {
        self.sent - self.freed - self.unused
    }

    /// The most that changes at once in one account.
    fn most(&self) -> i64 {
        self.kept.max(self.used).max(self.consumed).max(self.freed.abs()).max(self.sent)
    }

    fn new(shares: &Shares, kind: Kind, consumed: i64, sent: i64) -> Self {
        let &Shares { saved, released, workspace } = shares;
        let (kept, used, freed, unused) = match kind {
            Kind::Forward => (saved, 0, 0, 0),
            Kind::Backward => (0, workspace, saved, workspace),
            Kind::InputGradient => (0, workspace, released, 0),
            Kind::WeightGradient => (0, 0, saved - released, workspace),
        };
        Self { kept, used, consumed, freed, unused, sent }
    }
}

/// What a micro-batch keeps on a stage.
struct Shares {
    saved: i64,
    released: i64,
    workspace: i64,
}

/// The bytes of a step's operations, compiled for the loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepBytes {
    /// Of a usual micro-batch.
    by_stage_and_kind: Vec<OpBytes>,
    /// Whether micro-batches are unequal.
    is_scaled: bool,
}

impl StepBytes {
    /// The bytes of a step.
    pub(crate) fn new(inputs: &Inputs, rows: &Rows) -> Self {
        let mut bytes = Self::default();
        bytes.compile(inputs, rows);
        bytes
    }

    /// Makes these the bytes of a step, and keeps the memory of the one before.
    pub(crate) fn compile(&mut self, inputs: &Inputs, rows: &Rows) {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let sends = |kind, stage| rows.of(Op::new(kind, stage, MicroBatch(0))).sends;
        self.is_scaled = !costs.micro_batch_scale.is_empty();
        self.by_stage_and_kind.clear();
        for stage in (0..shape.stages() as u16).map(Stage) {
            let cost = &costs.stages[stage.index()];
            let shares = Shares {
                saved: signed(cost.saved.get()),
                released: cost.released_at_input_gradient,
                workspace: signed(cost.workspace.get()),
            };
            let message = |kind, from: Option<Stage>| match from {
                Some(from) if sends(kind, from) => signed(sent(&costs.stages[from.index()], kind)),
                _ => 0,
            };
            let arrives =
                [message(Kind::Forward, shape.previous(stage)), message(Kind::Backward, shape.next(stage))];
            let leaves = [Kind::Forward, Kind::Backward].map(|kind| message(kind, Some(stage)));
            for kind in Kind::ALL {
                let (consumed, sent) = match kind {
                    Kind::Forward => (arrives[0], leaves[0]),
                    Kind::Backward | Kind::InputGradient => (arrives[1], leaves[1]),
                    Kind::WeightGradient => (0, 0),
                };
                self.by_stage_and_kind.push(OpBytes::new(&shares, kind, consumed, sent));
            }
        }
    }

    /// The most that one operation changes, and its rank.
    pub(crate) fn largest(&self, inputs: &Inputs) -> (i64, Rank) {
        let shape = inputs.shape();
        let rank_of = |number: usize| shape.rank_of(Stage((number / Kind::ALL.len()) as u16));
        let usual = self.by_stage_and_kind.iter().enumerate();
        let largest = usual.map(|(number, bytes)| (bytes.most(), number)).max().unwrap_or_default();
        if !self.is_scaled {
            return (largest.0, rank_of(largest.1));
        }
        let stages = (0..shape.stages() as u16).map(Stage);
        let ops = stages.flat_map(|stage| Kind::ALL.map(|kind| Op::new(kind, stage, MicroBatch(0))));
        let all = ops.flat_map(|op| {
            (0..shape.micro_batches() as u32).map(move |i| Op { micro_batch: MicroBatch(i), ..op })
        });
        all.map(|op| (self.of(inputs, op).most(), shape.rank_of(op.stage))).max().unwrap_or_default()
    }

    /// Whether any message has a size.
    pub(crate) fn any_sent(&self) -> bool {
        self.by_stage_and_kind.iter().any(|bytes| bytes.sent > 0)
    }

    /// What an operation changes if its micro-batch is a usual one.
    #[inline]
    pub(crate) fn usual(&self, op: Op) -> &OpBytes {
        &self.by_stage_and_kind[op.stage.index() * Kind::ALL.len() + op.kind as usize]
    }

    /// What an operation changes.
    #[inline]
    pub(crate) fn of(&self, inputs: &Inputs, op: Op) -> OpBytes {
        let usual = self.usual(op);
        if self.is_scaled { scaled(inputs, op, usual) } else { *usual }
    }
}

/// The same for an unequal micro-batch: every amount is scaled and rounded on its own. I and W share what F
/// saved, so W frees the rest of the whole.
#[cold]
fn scaled(inputs: &Inputs, op: Op, usual: &OpBytes) -> OpBytes {
    let scaled =
        |bytes: i64| signed(inputs.costs().scaled(bytes.unsigned_abs(), op.micro_batch)) * bytes.signum();
    let cost = &inputs.costs().stages[op.stage.index()];
    let shares = Shares {
        saved: scaled(signed(cost.saved.get())),
        released: scaled(cost.released_at_input_gradient),
        workspace: scaled(signed(cost.workspace.get())),
    };
    OpBytes::new(&shares, op.kind, scaled(usual.consumed), scaled(usual.sent))
}

/// What a rank holds for the whole step, by account.
pub(crate) fn held(inputs: &Inputs, rank: Rank) -> [i64; ACCOUNTS] {
    let held = inputs.costs().ranks[rank.index()].held;
    let mut accounts = [0; ACCOUNTS];
    accounts[Account::Weights as usize] = signed(held.weights.get());
    accounts[Account::Gradients as usize] = signed(held.gradients.get());
    accounts[Account::Optimizer as usize] = signed(held.optimizer.get());
    accounts[Account::Buckets as usize] = signed(held.buckets.get());
    accounts
}

fn sent(cost: &StageCost, kind: Kind) -> u64 {
    let message = if kind == Kind::Forward { cost.activation } else { cost.gradient };
    message.bytes.get()
}

/// `Inputs::new` keeps the sum of all bytes below 2^63.
#[inline]
pub(crate) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("Inputs::new keeps the sum of all bytes below 2^63")
}
