//! Sentences: why a rank is idle in one interval, and how one schedule differs from another.

use std::fmt::Write as _;

use pipestep_engine::{Duration, Interval, Time};
use pipestep_schedule::{Kind, Op};
use pipestep_step::{Cause, Delay, IdleInterval, IdlePart};

use super::{Against, Explanation, transfers_on_path};

/// One idle interval in one sentence, without the rank and the time: `waits for the activation of micro-batch 2
/// from stage 2: made by rank 2 until 94 ms, in transfer 94-95 ms`.
pub(super) fn sentence(all: &Explanation, one: &IdleInterval) -> String {
    let Some(next) = one.next else {
        return tail(one);
    };
    let mut text = String::new();
    if one.parts.first().is_some_and(|part| part.cause == Cause::WarmUp) {
        text += "before its first operation: ";
    }
    match one.waits_for {
        Some(maker) => {
            let _ = write!(text, "waits for the {}: ", message(op(all, maker)));
            text += &delays(all, one, maker);
        }
        None if one.parts.iter().any(|part| part.cause == Cause::PostOrder) => {
            let next = op(all, next);
            let _ =
                write!(text, "waits for a send to complete before {next}, since its receive is posted late");
        }
        None => {
            let _ = write!(text, "has the inputs of {}", op(all, next));
        }
    }
    if let Some(maker) = one.waits_for
        && one.parts.iter().any(|part| part.cause == Cause::PostOrder)
    {
        text += &posted_late(all, maker);
    }
    if let Some(held) = one.parts.iter().find(|part| part.ready.is_some()) {
        text += &held_back(all, one, held);
    }
    text
}

/// After the last operation of a rank.
fn tail(one: &IdleInterval) -> String {
    let first = one.parts.first();
    let text = "has run everything and waits for the last gradient of all ranks";
    match first.map(|part| (part.cause, part.interval)) {
        Some((Cause::UpdateBarrier, could)) => {
            format!("{text}; its update could run ({}), but waits for them", could.length())
        }
        Some((Cause::Update, ran)) => format!("{text}; its update runs until {}", ran.end),
        _ => text.to_owned(),
    }
}

/// What else could have run, and why it did not.
fn held_back(all: &Explanation, one: &IdleInterval, held: &IdlePart) -> String {
    let ready = held.ready.map(|place| op(all, place).to_string()).unwrap_or_default();
    let since = if held.interval.start == one.interval.start {
        String::new()
    } else {
        format!(" from {} on", held.interval.start)
    };
    match held.cause {
        Cause::MemoryLimit => format!("; {ready} is ready{since}, but the memory limit holds it back"),
        _ => format!("; {ready} is ready{since}, but comes later in the order"),
    }
}

/// Which post the message of the operation at `maker` waited for.
fn posted_late(all: &Explanation, maker: usize) -> String {
    let start = all.record.messages.get(maker).start;
    match all.posts.map(|view| (view.posts.receives[maker], view.posts.sends[maker])) {
        Some((receive, _)) if receive == start => format!("; its receive is posted only at {receive}"),
        Some((_, send)) if send == start => format!("; its send is posted only at {send}"),
        _ => "; a message before it on the same channel is posted late".to_owned(),
    }
}

/// What the awaited result is held up by, one phase after the other.
fn delays(all: &Explanation, one: &IdleInterval, maker: usize) -> String {
    let rank = all.view.shape.rank_of(op(all, maker).stage);
    let mut phases: Vec<String> = Vec::new();
    let of = |wanted: fn(Delay) -> bool| -> Vec<&IdlePart> {
        one.parts.iter().filter(|part| part.delay.is_some_and(wanted)).collect()
    };
    let end = |parts: &[&IdlePart]| parts.last().map_or(one.interval.end, |part| part.interval.end);
    let before = of(|delay| matches!(delay, Delay::MakerBusy(_) | Delay::MakerIdle));
    if !before.is_empty() {
        phases.push(format!("rank {rank} {} until {}", not_begun(all, &before), end(&before)));
    }
    let making = of(|delay| delay == Delay::Making);
    if !making.is_empty() {
        phases.push(format!("made by rank {rank} until {}", end(&making)));
    }
    let queued = of(|delay| matches!(delay, Delay::LinkBusy(_)));
    if !queued.is_empty() {
        phases.push(format!("{} until {}", on_link(all, &queued), end(&queued)));
    }
    let unposted = of(|delay| delay == Delay::NotPosted);
    if !unposted.is_empty() {
        phases.push(format!("not posted at both ends until {}", end(&unposted)));
    }
    if let (Some(first), Some(last)) = {
        let moving = of(|delay| delay == Delay::Transfer);
        (moving.first().copied(), moving.last().copied())
    } {
        let span = Interval { start: first.interval.start, end: last.interval.end };
        phases.push(format!("in transfer {}", range(span)));
    }
    phases.join(", ")
}

/// What the maker's rank did before it began.
fn not_begun(all: &Explanation, parts: &[&IdlePart]) -> String {
    let mut places: Vec<usize> = Vec::new();
    let (mut busy, mut idle) = (0_u64, 0_u64);
    for part in parts {
        let length = part.interval.length().as_nanos();
        match part.delay {
            Some(Delay::MakerBusy(place)) => {
                busy += length;
                places.extend((places.last() != Some(&place)).then_some(place));
            }
            _ => idle += length,
        }
    }
    let works = match places[..] {
        [] => return "idle itself".to_owned(),
        [only] => format!("busy with {}", op(all, only)),
        [first, .., last] => format!("busy with {} to {}", op(all, first), op(all, last)),
    };
    if idle == 0 {
        return works;
    }
    let [busy, idle] = [busy, idle].map(Duration::from_nanos);
    format!("{works} ({busy}) and idle itself ({idle})")
}

/// Which messages had the link.
fn on_link(all: &Explanation, parts: &[&IdlePart]) -> String {
    let mut places: Vec<usize> = Vec::new();
    for part in parts {
        if let Some(Delay::LinkBusy(place)) = part.delay {
            places.extend((places.last() != Some(&place)).then_some(place));
        }
    }
    match places[..] {
        [only] => format!("link busy with the {}", message(op(all, only))),
        _ => format!("link busy with {} other messages", places.len()),
    }
}

/// `activation of micro-batch 2 from stage 2`.
fn message(op: Op) -> String {
    let what = if op.kind == Kind::Forward { "activation" } else { "gradient" };
    format!("{what} of micro-batch {} from stage {}", op.micro_batch, op.stage)
}

fn op(all: &Explanation, place: usize) -> Op {
    all.record.orders.all()[place]
}

/// `93-95 ms`; with both units where they differ.
pub(super) fn range(interval: Interval) -> String {
    let (from, to) = (interval.start.to_string(), interval.end.to_string());
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}-{to}"),
        (Some(("0", _)), _) => format!("0-{to}"),
        _ => format!("{from} to {to}"),
    }
}

/// How the step differs from one under another schedule, and how much of it is transfers.
pub(super) fn difference(all: &Explanation, other: &Against) -> String {
    let summary = all.view.summary;
    let (mine, theirs) = (summary.makespan, other.makespan);
    let (my_free, their_free) = (summary.zero_transfer_makespan, other.free_transfers);
    let mut text = format!("{} takes {theirs}", other.schedule);
    let _ = match compare(theirs, mine) {
        None => write!(text, ", just as long. "),
        Some((word, by)) => write!(text, ", {by} {word}. "),
    };
    match compare(my_free, their_free) {
        None => {
            let _ = write!(text, "With free transfers both take {my_free}");
            if mine != theirs {
                text += ": the whole difference is exposed transfers";
            }
        }
        Some((word, by)) => {
            let _ = write!(
                text,
                "With free transfers this step takes {my_free} and that one {their_free}: {by} {word} for other \
                 reasons than transfers"
            );
        }
    }
    let (messages, time) = transfers_on_path(all.path, all.record);
    let _ = write!(
        text,
        ". Exposed are {} here and {} there; the critical path crosses {messages} transfers ({time}) here and \
         {} ({}) there.",
        summary.makespan.since(my_free),
        theirs.since(their_free),
        other.messages_on_path,
        other.transfers_on_path
    );
    text
}

/// Whether the first is longer or shorter than the second, and by how much.
fn compare(first: Time, second: Time) -> Option<(&'static str, Duration)> {
    match first.cmp(&second) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(("less", second.since(first))),
        std::cmp::Ordering::Greater => Some(("more", first.since(second))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::Explained;
    use crate::testing::{MS, Sample};

    fn sentences(explained: &Explained, rank: u16) -> Vec<(String, String)> {
        let all = explained.explanation();
        let mine = all.idle.iter().filter(|one| one.rank.0 == rank);
        mine.map(|one| (range(one.interval), sentence(&all, one))).collect()
    }

    #[test]
    fn rank_3_of_the_headline_waits_for_micro_batch_2() {
        let found = sentences(&Explained::new(Sample::new("1f1b", 4, 1, 8)), 3);
        let expected = "waits for the activation of micro-batch 2 from stage 2: made by rank 2 until 94 ms, in \
                        transfer 94-95 ms";
        assert!(found.contains(&("93-95 ms".into(), expected.into())), "{found:#?}");
        assert_eq!(found[0].0, "0-33 ms");
        assert_eq!(
            found[0].1,
            "before its first operation: waits for the activation of micro-batch 0 from stage 2: rank 2 idle \
             itself until 22 ms, made by rank 2 until 32 ms, in transfer 32-33 ms"
        );
        let (_, last) = found.last().unwrap();
        assert_eq!(
            last,
            "has run everything and waits for the last gradient of all ranks; its update could run (1 ms), but \
             waits for them"
        );
    }

    #[test]
    fn rank_0_could_run_forwards() {
        let found = sentences(&Explained::new(Sample::new("1f1b", 4, 1, 8)), 0);
        assert_eq!(
            found[0].1,
            "waits for the gradient of micro-batch 0 from stage 1: rank 1 busy with 1F2 (1 ms) and idle itself \
             (44 ms) until 85 ms, made by rank 1 until 105 ms, in transfer 105-106 ms; 0F4 is ready, but comes \
             later in the order"
        );
    }

    #[test]
    fn a_difference_is_split_into_transfers_and_the_rest() {
        let explained = Explained::compared("1f1b", 4, 8);
        let all = explained.explanation();
        assert_eq!(
            difference(&all, all.against.unwrap()),
            "fill-drain takes 337 ms, 10 ms less. With free transfers both take 331 ms: the whole difference is \
             exposed transfers. Exposed are 16 ms here and 6 ms there; the critical path crosses 16 transfers \
             (16 ms) here and 6 (6 ms) there."
        );
        let mut other = all.against.unwrap().clone();
        (other.makespan, other.free_transfers) = (Time::from_nanos(400 * MS), Time::from_nanos(300 * MS));
        let text = difference(&all, &other);
        assert!(text.contains("400 ms, 53 ms more"), "{text}");
        assert!(text.contains("331 ms and that one 300 ms: 31 ms more for other reasons"), "{text}");
    }
}
