//! The terminal's answer to `explain`, never wider than 100 columns: idle time by cause, the longest intervals in
//! words, the critical path, what would help.

use std::fmt::Write as _;

use pipestep_engine::{Duration, Time};
use pipestep_schedule::Rank;
use pipestep_step::{
    CAUSES, Cause, CriticalPath, Delay, Element, IdleInterval, PathKind, PathStep, idle_by_cause,
};

use super::words::{difference, range, sentence};
use super::{Explanation, transfers_on_path};
use crate::table::{align, heading, lines, new_table, ranks_to_list};
use crate::units::{counted, grouped, percent, time_exact};
use crate::wrap::paragraph;

/// How many of the longest idle intervals are told.
const INTERVALS_TOLD: usize = 8;
/// How many stays of the critical path are listed from its start, and how many to its end.
const STAYS_LISTED: usize = 12;
/// Operations of one stay that are named.
const OPERATIONS_NAMED: usize = 8;
/// How many ranks are listed among what would help, those that help most.
const RANKS_HELPING: usize = 8;

/// What `explain` prints.
pub fn explain_text(all: &Explanation) -> String {
    let view = &all.view;
    let mut text = heading(&[&view.labels.name, "\n", &view.labels.schedule, ": ", &view.shape_text()]);
    let _ = writeln!(text, "makespan {}", since_zero(view.summary.makespan));
    text += "\nIdle time by cause\n";
    text += &causes(all);
    text += &held_up(all);
    text += &longest(all);
    text += &critical_path(all);
    text += "\nWhat would help (the same orders run again)\n";
    text += &helping(all);
    for other in all.micro_batches {
        text += &micro_batches(all, other);
    }
    if let Some(against) = all.against {
        let _ = writeln!(text, "\nAgainst {}", against.schedule);
        text += &paragraph(&difference(all, against));
    }
    text
}

/// Every idle interval of one rank, in order of time.
pub fn idle_text(all: &Explanation, rank: Rank) -> String {
    let mine: Vec<&IdleInterval> = all.idle.iter().filter(|one| one.rank == rank).collect();
    let sum: u64 = mine.iter().map(|one| one.interval.length().as_nanos()).sum();
    let sum = time_exact(Duration::from_nanos(sum));
    let mut text = format!("Rank {rank}: idle for {sum} in {}\n", counted(mine.len() as u64, "interval"));
    for one in mine {
        text += &told(all, one);
    }
    text
}

/// The table of causes: one row a rank, one column for each cause that occurs, sums below.
fn causes(all: &Explanation) -> String {
    let ranks = all.view.shape.ranks();
    let by_rank = idle_by_cause(ranks, all.idle);
    let mut sums = [0_u64; CAUSES];
    for causes in &by_rank {
        sums.iter_mut().zip(causes).for_each(|(sum, cause)| *sum += cause.as_nanos());
    }
    let occurring: Vec<Cause> = Cause::ALL.into_iter().filter(|&cause| sums[cause as usize] > 0).collect();
    let mut header = vec!["rank", "idle"];
    header.extend(occurring.iter().map(|&cause| short_name(cause)));
    let mut table = new_table(&header);
    let mut row = |name: String, causes: &[Duration; CAUSES]| {
        let idle = causes.iter().map(|cause| cause.as_nanos()).sum();
        let shown = |length: Duration| match length {
            Duration::ZERO => "-".to_owned(),
            length => length.to_string(),
        };
        let mut cells = vec![name, shown(Duration::from_nanos(idle))];
        cells.extend(occurring.iter().map(|&cause| shown(causes[cause as usize])));
        table.add_row(cells);
    };
    let listed = ranks_to_list(&all.view);
    for &rank in &listed {
        row(rank.to_string(), &by_rank[rank]);
    }
    row("all".to_owned(), &sums.map(Duration::from_nanos));
    align(&mut table, &[]);
    let mut text = lines(&table);
    if listed.len() < ranks {
        let _ = writeln!(text, "{} of {ranks} ranks shown; --json lists all", listed.len());
    }
    text
}

/// The heading of a cause's column.
fn short_name(cause: Cause) -> &'static str {
    match cause {
        Cause::WarmUp => "warm-up",
        Cause::Activation => "activation",
        Cause::Gradient => "gradient",
        Cause::OrderList => "order list",
        Cause::PostOrder => "post order",
        Cause::MemoryLimit => "memory limit",
        Cause::UpdateBarrier => "update barrier",
        Cause::Update => "own update",
        Cause::CoolDown => "cool-down",
    }
}

/// What held up the inputs that were waited for, all ranks together.
fn held_up(all: &Explanation) -> String {
    let mut sums = [0_u64; 6];
    let after_warm_up = all.idle.iter().flat_map(|one| &one.parts).filter(|part| part.cause != Cause::WarmUp);
    for part in after_warm_up {
        let kind = match part.delay {
            Some(Delay::MakerBusy(_)) => 0,
            Some(Delay::MakerIdle) => 1,
            Some(Delay::Making) => 2,
            Some(Delay::LinkBusy(_)) => 3,
            Some(Delay::NotPosted) => 4,
            Some(Delay::Transfer) => 5,
            None => continue,
        };
        sums[kind] += part.interval.length().as_nanos();
    }
    let names = [
        "their maker's rank was busy with other work",
        "their maker's rank was idle itself",
        "they were being made",
        "their link was busy",
        "they were not posted",
        "they were in transfer",
    ];
    let parts: Vec<String> = sums
        .into_iter()
        .zip(names)
        .filter(|&(sum, _)| sum > 0)
        .map(|(sum, name)| format!("{} while {name}", Duration::from_nanos(sum)))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    paragraph(&format!("Between operations, inputs were missing {}.", parts.join(", ")))
}

/// The longest idle intervals, in words.
fn longest(all: &Explanation) -> String {
    if all.idle.is_empty() {
        return "\nNo rank is ever idle\n".to_owned();
    }
    let mut order: Vec<&IdleInterval> = all.idle.iter().collect();
    order.sort_by_key(|one| (std::cmp::Reverse(one.interval.length()), one.rank, one.interval.start));
    let mut text = if order.len() > INTERVALS_TOLD {
        format!(
            "\nThe {INTERVALS_TOLD} longest of {} idle intervals (--rank tells those of one rank)\n",
            order.len()
        )
    } else {
        "\nIdle intervals, the longest first\n".to_owned()
    };
    for one in order.into_iter().take(INTERVALS_TOLD) {
        text += &told(all, one);
    }
    text
}

fn told(all: &Explanation, one: &IdleInterval) -> String {
    let head = format!("rank {}, {} ({})", one.rank, range(one.interval), one.interval.length());
    paragraph(&format!("{head}: {}", sentence(all, one)))
}

/// The critical path: what it consists of, how many there are, and where it goes.
fn critical_path(all: &Explanation) -> String {
    let path = all.path;
    let mut text = format!("\n{}", paragraph(&format!("Critical path: {}", summed(all))));
    text += &paragraph(&ties(path));
    let stays = stays(all);
    let mut table = new_table(&["rank", "from", "to", "operations", "then"]);
    let all_listed = stays.len() <= 2 * STAYS_LISTED + 1;
    for (position, stay) in stays.iter().enumerate() {
        let left = stays.len() - position;
        if !all_listed && position >= STAYS_LISTED && left > STAYS_LISTED {
            if position == STAYS_LISTED {
                let skipped = stays.len() - 2 * STAYS_LISTED;
                let more = format!("... {skipped} more; --json lists all");
                table.add_row(["", "", "", &more, ""]);
            }
            continue;
        }
        let ends = [stay.start, stay.end].map(|time| time.to_string());
        let [from, to] = ends;
        table.add_row([stay.place.clone(), from, to, operations(stay), stay.then.clone()]);
    }
    align(&mut table, &[3, 4]);
    text + &lines(&table)
}

/// `347 ms = 110 ms forward + 220 ms backward + 16 ms transfer (16 of them) + 1 ms update`.
fn summed(all: &Explanation) -> String {
    let by_kind = all.path.by_kind(all.record);
    let (messages, _) = transfers_on_path(all.path, all.record);
    let parts: Vec<String> = PathKind::ALL
        .into_iter()
        .zip(by_kind)
        .filter(|&(_, length)| length > Duration::ZERO)
        .map(|(kind, length)| match kind {
            PathKind::Transfer => format!("{length} in {messages} transfers"),
            _ => format!("{length} {}", kind.name().replace('_', " ")),
        })
        .collect();
    format!("{} = {}", all.view.summary.makespan, parts.join(" + "))
}

/// How many paths are as long.
fn ties(path: &CriticalPath) -> String {
    if path.count <= 1 {
        return "It is the only one.".to_owned();
    }
    let count = if path.count >= CriticalPath::MOST {
        format!("{} or more", grouped(CriticalPath::MOST))
    } else {
        grouped(path.count)
    };
    let (least, most) = path.transfers;
    let transfers = if least == most {
        format!("each with {least} of transfers")
    } else {
        format!("with {least} to {most} of transfers")
    };
    format!(
        "It is one of {count} of the same length, {transfers}; this one stays on each rank as long as it can."
    )
}

/// Consecutive elements of the path on one rank, and the transfer that leads away.
struct Stay {
    place: String,
    start: Time,
    end: Time,
    operations: Vec<String>,
    then: String,
}

fn stays(all: &Explanation) -> Vec<Stay> {
    let mut stays: Vec<Stay> = Vec::new();
    for step in &all.path.steps {
        let (start, end) = (step.interval.start, step.interval.end);
        if let Element::Message(place) = step.element {
            let then = transfer(all, place, step);
            match stays.last_mut() {
                // The next message on the same link, or the first since the last operation.
                Some(stay) if stay.then.is_empty() => stay.then = then,
                Some(stay) => stay.then = format!("{}, {then}", stay.then),
                None => {}
            }
            continue;
        }
        let (place, name) = named(all, step);
        match stays.last_mut() {
            Some(stay) if stay.place == place && stay.then.is_empty() => {
                stay.operations.push(name);
                stay.end = end;
            }
            _ => stays.push(Stay { place, start, end, operations: vec![name], then: String::new() }),
        }
    }
    stays
}

/// `1 ms to rank 1`.
fn transfer(all: &Explanation, place: usize, step: &PathStep) -> String {
    let to = super::receiver(all.view.shape, all.record, place);
    let to = to.map_or(String::new(), |rank| format!(" to rank {rank}"));
    format!("{}{to}", step.interval.length())
}

/// Where an element is, and what it is called.
fn named(all: &Explanation, step: &PathStep) -> (String, String) {
    let ops = all.record.orders.all();
    let rank_of = |place: usize| all.view.shape.rank_of(ops[place].stage).to_string();
    match step.element {
        Element::Setup => ("all".to_owned(), "setup".to_owned()),
        Element::Operation(place) => (rank_of(place), ops[place].to_string()),
        Element::Pair(place) => (rank_of(place), format!("{}&{}", ops[place], ops[place + 1])),
        Element::Message(place) => (rank_of(place), String::new()),
        Element::Update(rank) => (rank.to_string(), "update".to_owned()),
        Element::Held(rank) => (rank.to_string(), "held back".to_owned()),
    }
}

/// The first and last operations of a stay, all of them if they are few.
fn operations(stay: &Stay) -> String {
    let names = &stay.operations;
    if names.len() <= OPERATIONS_NAMED {
        return names.join(" ");
    }
    let half = OPERATIONS_NAMED / 2;
    let (first, last) = (names[..half].join(" "), names[names.len() - half..].join(" "));
    format!("{first} ... {last} ({})", names.len())
}

/// The table of changes.
fn helping(all: &Explanation) -> String {
    let makespan = all.view.summary.makespan;
    let mut table = new_table(&["change", "makespan", "gain", "share"]);
    let mut row = |change: String, changed: Time| {
        let (gain, share) = gain(makespan, changed);
        table.add_row([change, changed.to_string(), gain, share]);
    };
    row("transfers take no time".to_owned(), all.what_if.free_transfers);
    row("the same work spread evenly over the stages".to_owned(), all.what_if.balanced);
    let mut faster: Vec<_> = all.what_if.faster.iter().collect();
    if faster.len() > RANKS_HELPING {
        faster.sort_by_key(|one| (one.makespan, one.rank));
        faster.truncate(RANKS_HELPING);
    }
    if let Some(posts) = all.posts {
        row("messages need no posts".to_owned(), posts.makespan_without);
    }
    let percent = all.what_if.percent;
    for one in faster {
        let Some(stage) = one.stage else { continue };
        let slowest =
            if all.view.shape.stages_of(one.rank).nth(1).is_some() { "slowest stage, " } else { "" };
        row(format!("rank {}: {slowest}stage {stage}, {percent} % faster", one.rank), one.makespan);
    }
    align(&mut table, &[0]);
    let mut text = lines(&table);
    if all.what_if.faster.len() > RANKS_HELPING {
        let ranks = all.what_if.faster.len();
        let _ = writeln!(text, "the {RANKS_HELPING} of {ranks} ranks that help most; --json lists all");
    }
    text
}

/// How much a change gains, and as a share.
fn gain(before: Time, after: Time) -> (String, String) {
    let share =
        |part: Duration| part.as_secs_f64() / before.since(Time::ZERO).as_secs_f64().max(f64::MIN_POSITIVE);
    if after > before {
        let loss = after.since(before);
        return (format!("-{loss}"), format!("-{}", percent(share(loss))));
    }
    let gain = before.since(after);
    if gain == Duration::ZERO { ("-".into(), "-".into()) } else { (gain.to_string(), percent(share(gain))) }
}

/// What another number of micro-batches does to each.
fn micro_batches(all: &Explanation, other: &super::OtherMicroBatches) -> String {
    let each = |makespan: Time, count: usize| Duration::from_nanos(makespan.as_nanos() / count.max(1) as u64);
    let (view, summary) = (&all.view, all.view.summary);
    let (now, then) =
        (each(summary.makespan, view.shape.micro_batches()), each(other.makespan, other.micro_batches));
    let text = format!(
        "{} micro-batches take {}: {then} for each instead of {now}, bubble {} instead of {}",
        other.micro_batches,
        other.makespan,
        percent(other.bubble),
        percent(summary.bubble().by_makespan)
    );
    paragraph(&text)
}

fn since_zero(time: Time) -> String {
    time_exact(time.since(Time::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::Explained;
    use crate::testing::Sample;
    use crate::wrap::assert_fits;

    #[test]
    fn the_headline_says_where_its_time_goes() {
        let explained = Explained::compared("1f1b", 4, 8);
        let text = explain_text(&explained.explanation());
        println!("{text}");
        assert_fits(&text);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for needle in [
            "Critical path: 347 ms = 110 ms forward + 220 ms backward + 16 ms in 16 transfers + 1 ms update",
            "transfers take no time 331 ms 16 ms 4.6 %",
            "16 micro-batches take 599 ms: 37.438 ms for each instead of 43.375 ms",
            "the whole difference is exposed transfers",
        ] {
            assert!(flat.contains(needle), "{needle}\n{text}");
        }
        let of_rank_3 = idle_text(&explained.explanation(), Rank(3));
        println!("{of_rank_3}");
        assert_fits(&of_rank_3);
        let flat = of_rank_3.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentence = "rank 3, 93-95 ms (2 ms): waits for the activation of micro-batch 2 from stage 2: made by \
                        rank 2 until 94 ms, in transfer 94-95 ms";
        assert!(flat.contains(sentence), "{of_rank_3}");
    }

    #[test]
    fn large_and_odd_steps_fit_the_terminal_too() {
        for sample in [
            Sample::new("1f1b", 1, 1, 1),
            Sample::stretched("1f1b", [64, 1, 128], 1_234_567),
            Sample::new("interleaved", 8, 4, 16),
            Sample::unlimited("fill-drain", [4, 1, 8]),
            Sample::ordered(2, &["0F0 0F1+ 0I0 0W0 0B1"]),
        ] {
            let explained = Explained::new(sample);
            let text = explain_text(&explained.explanation());
            println!("{text}");
            assert_fits(&text);
            assert!(text.lines().count() < 110, "{text}");
            assert_fits(&idle_text(&explained.explanation(), Rank(0)));
        }
    }
}
