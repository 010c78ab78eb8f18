//! What a step is made of, checked once so that the loops need not check again.

use pipestep_engine::{Overflow, Time};
use pipestep_schedule::{MicroBatch, Shape, Stage};

use crate::Costs;

/// What joins the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// One serial link for each ordered pair of ranks.
    #[default]
    Directional,
    /// One serial half-duplex link for all.
    Shared,
    /// A pure delay: messages never queue.
    Unlimited,
}

/// Which of the messages that wait for a link goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbitration {
    /// The one whose producer ended first; then activation before gradient, lower stage, lower micro-batch.
    #[default]
    Fifo,
    /// Activation before gradient, then lower stage, then lower micro-batch, whenever it became ready.
    ByStage,
}

/// When a rank may update its weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdateAfter {
    /// When every gradient of every rank is ready.
    #[default]
    All,
    /// When its own rank's are.
    Own,
}

/// The rules and costs of one step; the order of operations is given apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    shape: Shape,
    costs: Costs,
    /// The sum of all times: no instant is later.
    horizon: Time,
    /// What joins the ranks.
    pub links: Links,
    /// Which waiting message goes first.
    pub arbitration: Arbitration,
    /// When a rank may update.
    pub update_after: UpdateAfter,
}

/// Why inputs are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A list of the wrong length.
    #[error("{what}: expected {expected} entries, found {found}")]
    Length {
        /// Which list.
        what: &'static str,
        /// How long it must be.
        expected: usize,
        /// How long it is.
        found: usize,
    },
    /// A step that could end past the last representable instant, or hold more bytes than can be counted.
    #[error("the step is too large: its {what} add up to more than 2^63-1")]
    TooLarge {
        /// `times in ns` or `bytes`.
        what: &'static str,
    },
    /// More would be freed at the end of `I` than was kept.
    #[error("stage {stage}: {released} bytes released at the end of I are more than the {saved} saved")]
    Released {
        /// The stage.
        stage: Stage,
        /// Bytes freed.
        released: i64,
        /// Bytes kept.
        saved: u64,
    },
    /// A sum past 64 bits.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl Inputs {
    /// The inputs of a step, with the default rules.
    ///
    /// Everything that could run one after the other, and everything that could be held at once, must fit in 63
    /// bits. No instant and no level of a step can exceed these sums, so the loops add without checking.
    ///
    /// # Errors
    /// [`InputError`] for lists of the wrong length and for sums past 63 bits.
    pub fn new(shape: Shape, costs: Costs) -> Result<Self, InputError> {
        let length = |what, expected, found| {
            if expected == found { Ok(()) } else { Err(InputError::Length { what, expected, found }) }
        };
        length("costs by stage", shape.stages(), costs.stages.len())?;
        length("costs by rank", shape.ranks(), costs.ranks.len())?;
        if !costs.micro_batch_scale.is_empty() {
            length("micro-batch scales", shape.micro_batches(), costs.micro_batch_scale.len())?;
        }
        let horizon = check_sums(&shape, &costs)?;
        Ok(Self {
            shape,
            costs,
            horizon,
            links: Links::default(),
            arbitration: Arbitration::default(),
            update_after: UpdateAfter::default(),
        })
    }

    /// Ranks, stages, micro-batches.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What operations and messages cost.
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// The same step with other costs.
    ///
    /// # Errors
    /// As for [`Inputs::new`].
    pub fn with_costs(&self, costs: Costs) -> Result<Self, InputError> {
        let checked = Self::new(self.shape.clone(), costs)?;
        Ok(Self { costs: checked.costs, ..self.clone() })
    }

    /// The same step with other costs, whose sum has been checked already.
    pub(crate) fn with_checked_costs(&self, costs: Costs) -> Self {
        Self { costs, ..self.clone() }
    }

    /// An instant that nothing of the step is later than.
    pub(crate) const fn horizon(&self) -> Time {
        self.horizon
    }

    /// The same step with every transfer of length zero.
    pub fn with_free_transfers(&self) -> Self {
        let mut free = self.clone();
        for stage in &mut free.costs.stages {
            stage.activation.time = pipestep_engine::Duration::ZERO;
            stage.gradient.time = pipestep_engine::Duration::ZERO;
        }
        free
    }
}

/// The largest sum of times or of bytes.
const LARGEST: u128 = i64::MAX as u128;

/// Checks the sums of all times and of all bytes; returns the first.
fn check_sums(shape: &Shape, costs: &Costs) -> Result<Time, InputError> {
    // How often the usual amount of a stage occurs, at most: once for each micro-batch, each by its factor.
    let micro_batches = shape.micro_batches() as u32;
    let scaled = |amount: u64| -> u128 {
        if costs.micro_batch_scale.is_empty() {
            return u128::from(amount) * u128::from(micro_batches);
        }
        (0..micro_batches).map(|i| u128::from(costs.scaled(amount, MicroBatch(i)))).sum()
    };
    let mut time = u128::from(costs.setup.as_nanos());
    let mut bytes = 0_u128;
    for (stage, cost) in costs.stages.iter().enumerate() {
        let (saved, released) = (cost.saved.get(), cost.released_at_input_gradient);
        if released > 0 && released.unsigned_abs() > saved {
            return Err(InputError::Released { stage: Stage(stage as u16), released, saved });
        }
        let ops = [cost.forward, cost.backward, cost.input_gradient, cost.weight_gradient];
        let messages = [cost.activation.time, cost.gradient.time];
        time += ops.into_iter().chain(messages).map(|length| scaled(length.as_nanos())).sum::<u128>();
        // A message is held by its sender and by its receiver.
        let buffers = 2 * (scaled(cost.activation.bytes.get()) + scaled(cost.gradient.bytes.get()));
        bytes += scaled(saved) + scaled(released.unsigned_abs()) + scaled(cost.workspace.get()) + buffers;
    }
    for rank in &costs.ranks {
        let pair = rank.overlapped_pair.unwrap_or_default().as_nanos();
        time += u128::from(rank.update.as_nanos()) + scaled(pair) * shape.stages() as u128;
        let held = rank.held;
        let parts = [held.weights, held.gradients, held.optimizer, held.buckets];
        bytes += parts.into_iter().map(|part| u128::from(part.get())).sum::<u128>();
    }
    for (what, sum) in [("times in ns", time), ("bytes", bytes)] {
        if sum > LARGEST {
            return Err(InputError::TooLarge { what });
        }
    }
    Ok(Time::from_nanos(time as u64))
}
