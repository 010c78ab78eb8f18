//! What `run` can write, under which names, and what of it suits a scenario.

use crate::args;
use crate::output::{Target, targets};

/// What can be written about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Artefact {
    Json,
    Events,
    Memory,
    Trace,
    Png(Drawing),
    Svg(Drawing),
}

impl Artefact {
    /// Whether it needs everything that a step did.
    pub(super) fn is_of_step(self) -> bool {
        match self {
            Self::Events | Self::Memory | Self::Trace => true,
            Self::Png(drawing) | Self::Svg(drawing) => matches!(drawing, Drawing::Gantt | Drawing::Memory),
            Self::Json => false,
        }
    }

    /// Whether it needs every bar of the picture of rounds.
    pub(super) fn draws_rounds(self) -> bool {
        matches!(self, Self::Png(Drawing::Rl) | Self::Svg(Drawing::Rl))
    }
}

/// The pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawing {
    Gantt,
    Memory,
    Scatter,
    Job,
    Storage,
    Completion,
    Losses,
    Rl,
    Lengths,
    Staleness,
}

impl Drawing {
    /// How many there are.
    pub(super) const COUNT: usize = 10;
}

/// What a scenario describes, as far as it decides what can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Every scenario.
    Any,
    Step,
    /// A step whose lengths are drawn.
    StepRuns,
    Job,
    /// A job of several runs.
    Runs,
    Rl,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Part, Artefact, &str); 24] = [
    (Part::Step, Artefact::Png(Drawing::Gantt), "gantt.png"),
    (Part::Step, Artefact::Svg(Drawing::Gantt), "gantt.svg"),
    (Part::Step, Artefact::Png(Drawing::Memory), "memory.png"),
    (Part::Step, Artefact::Svg(Drawing::Memory), "memory.svg"),
    (Part::StepRuns, Artefact::Png(Drawing::Scatter), "scatter.png"),
    (Part::StepRuns, Artefact::Svg(Drawing::Scatter), "scatter.svg"),
    (Part::Any, Artefact::Json, "result.json"),
    (Part::Step, Artefact::Events, "events.csv"),
    (Part::Step, Artefact::Memory, "memory.csv"),
    (Part::Step, Artefact::Trace, "trace.json"),
    (Part::Job, Artefact::Png(Drawing::Job), "job.png"),
    (Part::Job, Artefact::Svg(Drawing::Job), "job.svg"),
    (Part::Job, Artefact::Png(Drawing::Storage), "storage.png"),
    (Part::Job, Artefact::Svg(Drawing::Storage), "storage.svg"),
    (Part::Runs, Artefact::Png(Drawing::Completion), "completion.png"),
    (Part::Runs, Artefact::Svg(Drawing::Completion), "completion.svg"),
    (Part::Runs, Artefact::Png(Drawing::Losses), "losses.png"),
    (Part::Runs, Artefact::Svg(Drawing::Losses), "losses.svg"),
    (Part::Rl, Artefact::Png(Drawing::Rl), "rl.png"),
    (Part::Rl, Artefact::Svg(Drawing::Rl), "rl.svg"),
    (Part::Rl, Artefact::Png(Drawing::Lengths), "lengths.png"),
    (Part::Rl, Artefact::Svg(Drawing::Lengths), "lengths.svg"),
    (Part::Rl, Artefact::Png(Drawing::Staleness), "staleness.png"),
    (Part::Rl, Artefact::Svg(Drawing::Staleness), "staleness.svg"),
];

/// Everything that was asked for and that a scenario of these parts has, with its target.
pub(super) fn wanted(typed: &args::Run, has: impl Fn(Part) -> bool) -> Vec<(Artefact, Target)> {
    let suiting = EVERYTHING.into_iter().filter(|(part, ..)| has(*part));
    let single = [
        (Artefact::Json, typed.json.as_deref()),
        (Artefact::Events, typed.events.as_deref()),
        (Artefact::Memory, typed.memory.as_deref()),
        (Artefact::Trace, typed.trace.as_deref()),
    ];
    targets(typed.out.as_deref(), suiting.map(|(_, artefact, name)| (artefact, name)), single)
}
