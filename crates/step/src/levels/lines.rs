//! What one kind of operation on one stage does to its rank's level.

use pipestep_schedule::{Kind, Op, Stage};

use crate::Inputs;
use crate::bytes::{OpBytes, StepBytes};
use crate::rows::Rows;

/// One kind of operation on one stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    pub(super) duration: u64,
    /// By how many bytes its start and its end change the level.
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) input: u32,
}

impl Line {
    pub(super) const fn with(&self, bytes: &OpBytes) -> Self {
        Self { start: bytes.at_start(), end: bytes.at_end(), ..*self }
    }
}

/// The lines of a step, by stage and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Vec<Line>);

impl Lines {
    /// Makes these the lines of a step, and keeps the memory of the one before.
    pub(super) fn compile(&mut self, inputs: &Inputs, rows: &Rows, bytes: &StepBytes) {
        self.0.clear();
        for stage in (0..inputs.shape().stages() as u16).map(Stage) {
            for kind in Kind::ALL {
                let op = Op { kind, stage, ..Op::forward(0, 0) };
                let row = rows.of(op);
                let line = Line { duration: row.duration, input: row.input, ..Line::default() };
                self.0.push(line.with(bytes.usual(op)));
            }
        }
    }

    /// By [`Rows::number`].
    pub(super) fn all(&self) -> &[Line] {
        &self.0
    }
}
