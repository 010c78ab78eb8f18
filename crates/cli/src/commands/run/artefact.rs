//! What `run` can write, under which names, and what of it suits a scenario.

use crate::args;
use crate::output::Target;

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
    /// Whether it is a picture of a step.
    pub(super) fn draws_step(self) -> bool {
        let (Self::Png(drawing) | Self::Svg(drawing)) = self else { return false };
        matches!(drawing, Drawing::Gantt | Drawing::Memory)
    }
}

/// The pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawing {
    Gantt,
    Memory,
    Job,
    Storage,
    Completion,
    Losses,
}

impl Drawing {
    /// How many there are.
    pub(super) const COUNT: usize = 6;
}

/// What a scenario describes, as far as it decides what can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Every scenario.
    Any,
    Step,
    Job,
    /// A job of several runs.
    Runs,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Part, Artefact, &str); 16] = [
    (Part::Step, Artefact::Png(Drawing::Gantt), "gantt.png"),
    (Part::Step, Artefact::Svg(Drawing::Gantt), "gantt.svg"),
    (Part::Step, Artefact::Png(Drawing::Memory), "memory.png"),
    (Part::Step, Artefact::Svg(Drawing::Memory), "memory.svg"),
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
];

/// Everything that was asked for and that a scenario of these parts has, with its target.
pub(super) fn wanted(typed: &args::Run, has: impl Fn(Part) -> bool) -> Vec<(Artefact, Target)> {
    let mut found = Vec::new();
    for directory in &typed.out {
        let suiting = EVERYTHING.iter().filter(|(part, ..)| has(*part));
        found.extend(
            suiting.map(|&(_, artefact, name)| (artefact, Target::InDirectory(directory.clone(), name))),
        );
    }
    let single = [
        (Artefact::Json, &typed.json),
        (Artefact::Events, &typed.events),
        (Artefact::Memory, &typed.memory),
        (Artefact::Trace, &typed.trace),
    ];
    found.extend(single.into_iter().filter_map(|(artefact, path)| {
        let path = path.as_deref()?;
        Some((artefact, Target::from_argument(path)))
    }));
    found
}
