//! One operation, and its text form `2F0`: stage, kind, micro-batch, as PyTorch writes it.

use std::fmt;
use std::str::FromStr;

use crate::{MicroBatch, Stage};

/// What an operation computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `F`: the forward of a stage.
    Forward,
    /// `B`: the full backward, both gradients.
    Backward,
    /// `I`: the backward for the input only.
    InputGradient,
    /// `W`: the backward for the weights only; needs the `I` of the same stage and micro-batch.
    WeightGradient,
}

/// One operation of a rank's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op {
    /// What it computes.
    pub kind: Kind,
    /// Whether it runs as one with the next operation of its list (an overlapped pair).
    pub paired: bool,
    /// On which stage.
    pub stage: Stage,
    /// For which micro-batch.
    pub micro_batch: MicroBatch,
}

impl Kind {
    /// All kinds, in the order of their letters' meaning.
    pub const ALL: [Self; 4] = [Self::Forward, Self::Backward, Self::InputGradient, Self::WeightGradient];

    /// PyTorch's letter.
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGradient => 'I',
            Self::WeightGradient => 'W',
        }
    }

    /// Whether the operation passes a gradient to the stage before.
    pub const fn sends_gradient(self) -> bool {
        matches!(self, Self::Backward | Self::InputGradient)
    }
}

impl Op {
    /// An operation that runs on its own.
    pub const fn new(kind: Kind, stage: Stage, micro_batch: MicroBatch) -> Self {
        Self { kind, paired: false, stage, micro_batch }
    }

    /// The forward of `micro_batch` on `stage`.
    pub const fn forward(stage: u16, micro_batch: u32) -> Self {
        Self::new(Kind::Forward, Stage(stage), MicroBatch(micro_batch))
    }

    /// The full backward.
    pub const fn backward(stage: u16, micro_batch: u32) -> Self {
        Self::new(Kind::Backward, Stage(stage), MicroBatch(micro_batch))
    }

    /// The input-gradient backward.
    pub const fn input_gradient(stage: u16, micro_batch: u32) -> Self {
        Self::new(Kind::InputGradient, Stage(stage), MicroBatch(micro_batch))
    }

    /// The weight-gradient backward.
    pub const fn weight_gradient(stage: u16, micro_batch: u32) -> Self {
        Self::new(Kind::WeightGradient, Stage(stage), MicroBatch(micro_batch))
    }

    /// The same operation, joined with the next one of its list.
    pub const fn joined(self) -> Self {
        Self { paired: true, ..self }
    }
}

/// Writes `2F0`; whether it is joined to the next one is the list's affair.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.stage, self.kind.letter(), self.micro_batch)
    }
}

/// Why a text is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no operation: expected stage, one of F, B, I, W, and micro-batch, as in `2F0`")]
pub struct OpError(pub String);

/// The reverse of [`Op`]'s `Display`.
impl FromStr for Op {
    type Err = OpError;

    fn from_str(text: &str) -> Result<Self, OpError> {
        let error = || OpError(text.to_owned());
        let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let (stage, rest) = text.split_at(at);
        let letter = rest.chars().next().ok_or_else(error)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.letter() == letter).ok_or_else(error)?;
        let micro_batch = &rest[letter.len_utf8()..];
        if !micro_batch.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let stage = stage.parse().map_err(|_| error())?;
        let micro_batch = micro_batch.parse().map_err(|_| error())?;
        Ok(Self::new(kind, Stage(stage), MicroBatch(micro_batch)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn text_and_operation_are_inverses(kind in 0_usize..4, stage: u16, micro_batch: u32) {
            let op = Op::new(Kind::ALL[kind], Stage(stage), MicroBatch(micro_batch));
            prop_assert_eq!(op.to_string().parse(), Ok(op));
        }
    }

    #[test]
    fn what_is_no_operation_is_refused() {
        for text in ["", "F0", "2F", "2f0", "2F0x", "2X0", "-1F0", "2F-1", "2F+1", "99999999F0", "é", "2é1"]
        {
            assert!(text.parse::<Op>().is_err(), "{text}");
        }
    }
}
