//! The JSON of an explanation: the key `explain` of the contract. Integer nanoseconds; operations in their text
//! form (`3F2`); what does not apply is left out.

use std::collections::BTreeMap;

use pipestep_engine::Duration;
use pipestep_step::{
    CAUSES, Cause, CriticalPath, Delay, Element, IdleInterval, IdlePart, PathKind, PathStep, idle_by_cause,
};
use serde::Serialize;

use super::words::sentence;
use super::{Against, Explanation, OtherMicroBatches, receiver};

/// Where the time of a step goes.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainResult {
    idle: IdleResult,
    critical_path: PathResult,
    what_if: WhatIfResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<AgainstResult>,
}

#[derive(Clone, Debug, Serialize)]
struct IdleResult {
    per_rank: Vec<RankIdle>,
    intervals: Vec<IntervalResult>,
}

#[derive(Clone, Debug, Serialize)]
struct RankIdle {
    rank: usize,
    idle_ns: u64,
    by_cause: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Serialize)]
struct IntervalResult {
    rank: u16,
    start_ns: u64,
    end_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
    sentence: String,
    parts: Vec<PartResult>,
}

#[derive(Clone, Debug, Serialize)]
struct PartResult {
    start_ns: u64,
    end_ns: u64,
    cause: &'static str,
    /// `maker_busy`, `maker_idle`, `making`, `link_busy`, `not_posted`, `transfer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<&'static str>,
    /// What the maker's rank runs, or whose message has the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    delayed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct PathResult {
    length_ns: u64,
    /// Paths of the same length.
    count: u64,
    /// Whether there may be more than that.
    count_is_limit: bool,
    least_transfers_ns: u64,
    most_transfers_ns: u64,
    by_kind: BTreeMap<&'static str, u64>,
    steps: Vec<StepResult>,
}

#[derive(Clone, Debug, Serialize)]
struct StepResult {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<String>,
    /// The second half of an overlapped pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    with: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<u16>,
    /// The receiver of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<u16>,
    start_ns: u64,
    end_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct WhatIfResult {
    free_transfers_ns: u64,
    balanced_ns: u64,
    /// Where the lists say when messages are posted: if they needed no posts.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_posts_ns: Option<u64>,
    faster_percent: u8,
    faster: Vec<FasterResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    micro_batches: Vec<MicroBatchesResult>,
}

#[derive(Clone, Debug, Serialize)]
struct FasterResult {
    rank: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<u16>,
    makespan_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
struct MicroBatchesResult {
    micro_batches: usize,
    makespan_ns: u64,
    bubble_by_makespan: f64,
}

#[derive(Clone, Debug, Serialize)]
struct AgainstResult {
    schedule: String,
    makespan_ns: u64,
    free_transfers_ns: u64,
    messages_on_path: usize,
    transfers_on_path_ns: u64,
}

impl ExplainResult {
    /// The contract's view of an explanation.
    pub fn new(all: &Explanation) -> Self {
        let by_rank = idle_by_cause(all.view.shape.ranks(), all.idle);
        Self {
            idle: IdleResult {
                per_rank: by_rank.iter().enumerate().map(|(rank, causes)| rank_idle(rank, causes)).collect(),
                intervals: all.idle.iter().map(|one| interval(all, one)).collect(),
            },
            critical_path: path(all),
            what_if: what_if(all),
            against: all.against.map(against),
        }
    }
}

fn rank_idle(rank: usize, causes: &[Duration; CAUSES]) -> RankIdle {
    let nanos = causes.map(Duration::as_nanos);
    let by_cause = Cause::ALL.into_iter().zip(nanos).filter(|&(_, nanos)| nanos > 0);
    RankIdle {
        rank,
        idle_ns: nanos.iter().sum(),
        by_cause: by_cause.map(|(cause, nanos)| (cause.name(), nanos)).collect(),
    }
}

fn interval(all: &Explanation, one: &IdleInterval) -> IntervalResult {
    IntervalResult {
        rank: one.rank.0,
        start_ns: one.interval.start.as_nanos(),
        end_ns: one.interval.end.as_nanos(),
        next: one.next.map(|place| op(all, place)),
        waits_for: one.waits_for.map(|place| op(all, place)),
        sentence: sentence(all, one),
        parts: one.parts.iter().map(|part| self::part(all, part)).collect(),
    }
}

fn part(all: &Explanation, part: &IdlePart) -> PartResult {
    let (delay, by) = match part.delay {
        None => (None, None),
        Some(Delay::MakerBusy(place)) => (Some("maker_busy"), Some(place)),
        Some(Delay::MakerIdle) => (Some("maker_idle"), None),
        Some(Delay::Making) => (Some("making"), None),
        Some(Delay::LinkBusy(place)) => (Some("link_busy"), Some(place)),
        Some(Delay::NotPosted) => (Some("not_posted"), None),
        Some(Delay::Transfer) => (Some("transfer"), None),
    };
    PartResult {
        start_ns: part.interval.start.as_nanos(),
        end_ns: part.interval.end.as_nanos(),
        cause: part.cause.name(),
        delay,
        delayed_by: by.map(|place| op(all, place)),
        ready: part.ready.map(|place| op(all, place)),
    }
}

fn path(all: &Explanation) -> PathResult {
    let by_kind = PathKind::ALL.into_iter().zip(all.path.by_kind(all.record));
    let by_kind = by_kind.map(|(kind, length)| (kind.name(), length.as_nanos()));
    PathResult {
        length_ns: all.view.summary.makespan.as_nanos(),
        count: all.path.count,
        count_is_limit: all.path.count >= CriticalPath::MOST,
        least_transfers_ns: all.path.transfers.0.as_nanos(),
        most_transfers_ns: all.path.transfers.1.as_nanos(),
        by_kind: by_kind.filter(|&(_, nanos)| nanos > 0).collect(),
        steps: all.path.steps.iter().map(|step| path_step(all, step)).collect(),
    }
}

fn path_step(all: &Explanation, step: &PathStep) -> StepResult {
    let rank_of = |place: usize| all.view.shape.rank_of(all.record.orders.all()[place].stage);
    let (first, second, rank) = match step.element {
        Element::Setup => (None, None, None),
        Element::Operation(place) | Element::Message(place) => (Some(place), None, Some(rank_of(place))),
        Element::Pair(place) => (Some(place), Some(place + 1), Some(rank_of(place))),
        Element::Update(rank) | Element::Held(rank) => (None, None, Some(rank)),
    };
    let peer = match step.element {
        Element::Message(place) => receiver(all.view.shape, all.record, place),
        _ => None,
    };
    StepResult {
        kind: step.element.kind(all.record).name(),
        op: first.map(|place| op(all, place)),
        with: second.map(|place| op(all, place)),
        rank: rank.map(|rank| rank.0),
        peer: peer.map(|rank| rank.0),
        start_ns: step.interval.start.as_nanos(),
        end_ns: step.interval.end.as_nanos(),
    }
}

fn what_if(all: &Explanation) -> WhatIfResult {
    let found = all.what_if;
    let faster = found.faster.iter().map(|one| FasterResult {
        rank: one.rank.0,
        stage: one.stage.map(|stage| stage.0),
        makespan_ns: one.makespan.as_nanos(),
    });
    let micro_batches = all.micro_batches.iter().map(|other: &OtherMicroBatches| MicroBatchesResult {
        micro_batches: other.micro_batches,
        makespan_ns: other.makespan.as_nanos(),
        bubble_by_makespan: other.bubble,
    });
    WhatIfResult {
        free_transfers_ns: found.free_transfers.as_nanos(),
        balanced_ns: found.balanced.as_nanos(),
        without_posts_ns: all.posts.map(|posts| posts.makespan_without.as_nanos()),
        faster_percent: found.percent,
        faster: faster.collect(),
        micro_batches: micro_batches.collect(),
    }
}

fn against(other: &Against) -> AgainstResult {
    AgainstResult {
        schedule: other.schedule.clone(),
        makespan_ns: other.makespan.as_nanos(),
        free_transfers_ns: other.free_transfers.as_nanos(),
        messages_on_path: other.messages_on_path,
        transfers_on_path_ns: other.transfers_on_path.as_nanos(),
    }
}

fn op(all: &Explanation, place: usize) -> String {
    all.record.orders.all()[place].to_string()
}
