//! A Gantt chart in letters, for the terminal and for tests that show the schedule they assert.
//!
//! One line a rank. Where the times have a common measure that fits, a column is exactly that long; otherwise
//! a column shows what fills most of it.

use std::fmt::Write as _;

use pipestep_engine::{Duration, Time};
use pipestep_schedule::{Rank, Shape};
use pipestep_step::Record;

use crate::theme::{Colour, of_chunk, text_on};
use crate::units::{ticks, time_unit, trimmed};
use crate::{Event, EventKind, StepView, events};

/// More ranks than this are not drawn one by one.
const RANKS_DRAWN: usize = 64;
/// Columns that one common measure of time takes at most: wider ones only spread the picture.
const WIDEST_MEASURE: u64 = 8;

/// How a text Gantt is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextGantt {
    /// Columns of the whole line, the rank's name included; at least 40 are used.
    pub width: usize,
    /// Plain letters or colours.
    pub ink: Ink,
}

/// Whether the terminal takes colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Letters only.
    Plain,
    /// ANSI 24-bit background colours, those of the pictures.
    Ansi,
}

/// What stands in one column of a rank's line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Idle,
    /// The event with this place in the list.
    Busy(usize),
}

/// Draws what each rank does from 0 to the makespan: operations as `F3` (with the stage before it where a rank
/// has several: `2F3`) or as their letter where there is no room, idle time as dots, an overlapped pair as
/// `F3&B1`.
pub fn text_gantt(view: &StepView, record: &Record, options: TextGantt) -> String {
    let all: Vec<Event> = events(view.shape, record).into_iter().filter(|e| !e.kind.is_message()).collect();
    let last_rank = view.shape.ranks().saturating_sub(1);
    let name_width = format!("rank {last_rank} ").len();
    let makespan = view.summary.makespan.as_nanos();
    let columns = columns(&all, makespan, options.width.max(40) - name_width);
    let mut text = String::new();
    let step = view.shape.ranks().div_ceil(RANKS_DRAWN);
    for rank in (0..view.shape.ranks()).step_by(step) {
        let mine: Vec<Event> = all.iter().copied().filter(|e| e.rank.index() == rank).collect();
        let name = format!("rank {rank} ");
        let line = row(&mine, view.shape, makespan, columns, options.ink);
        let _ = writeln!(text, "{name:name_width$}{}", line.trim_end());
    }
    text += &scale(makespan, columns, name_width, options.width.max(40));
    if step > 1 {
        let _ = writeln!(text, "one rank in {step} of {} is drawn", view.shape.ranks());
    }
    text
}

/// As many columns as the common measure of all times allows, or all that there are.
fn columns(all: &[Event], makespan: u64, room: usize) -> u64 {
    let room = room as u64;
    let times = all.iter().flat_map(|event| [event.start.as_nanos(), event.end.as_nanos()]);
    let measure = times.fold(makespan, greatest_common_divisor);
    if measure == 0 {
        return 1;
    }
    let measures = makespan / measure;
    if measures > room { room } else { measures * (room / measures).min(WIDEST_MEASURE) }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn row(mine: &[Event], shape: &Shape, makespan: u64, columns: u64, ink: Ink) -> String {
    let painted = paint(mine, makespan, columns);
    let mut text = String::new();
    let mut from = 0;
    while from < painted.len() {
        let length = painted[from..].iter().take_while(|&&column| column == painted[from]).count();
        match painted[from] {
            Column::Idle => text += &".".repeat(length),
            Column::Busy(index) => text += &block(mine, index, shape, length, ink),
        }
        from += length;
    }
    text
}

/// What fills most of each column; nothing where less than half of it is filled.
fn paint(mine: &[Event], makespan: u64, columns: u64) -> Vec<Column> {
    let mut painted = vec![Column::Idle; columns as usize];
    let mut most = vec![0_u128; columns as usize];
    let mut filled = vec![0_u128; columns as usize];
    // In units of 1/columns ns a column is `makespan` long.
    let (columns, makespan) = (u128::from(columns), u128::from(makespan.max(1)));
    for (index, event) in mine.iter().enumerate() {
        if is_second_of_pair(mine, index) {
            continue;
        }
        let start = u128::from(event.start.as_nanos()) * columns;
        let end = u128::from(event.end.as_nanos()) * columns;
        for column in start / makespan..end.div_ceil(makespan).min(columns) {
            let share = end.min((column + 1) * makespan) - start.max(column * makespan);
            let column = column as usize;
            filled[column] += share;
            if share > most[column] {
                (most[column], painted[column]) = (share, Column::Busy(index));
            }
        }
    }
    for (column, filled) in painted.iter_mut().zip(filled) {
        if 2 * filled < makespan {
            *column = Column::Idle;
        }
    }
    painted
}

fn is_second_of_pair(mine: &[Event], index: usize) -> bool {
    index > 0 && mine[index].is_paired_with(&mine[index - 1])
}

fn block(mine: &[Event], index: usize, shape: &Shape, length: usize, ink: Ink) -> String {
    let event = &mine[index];
    let is_pair = index + 1 < mine.len() && is_second_of_pair(mine, index + 1);
    let mut label = label(event, shape);
    if is_pair {
        label = format!("{label}&{}", self::label(&mine[index + 1], shape));
    }
    if label.len() > length {
        label = if is_pair { '&' } else { event.kind.letter() }.to_string();
    }
    match ink {
        Ink::Plain => format!("{label:-<length$}"),
        Ink::Ansi => coloured(&format!("{label:length$}"), colour(event, shape)),
    }
}

fn label(event: &Event, shape: &Shape) -> String {
    let letter = event.kind.letter();
    match (event.stage, event.micro_batch) {
        (Some(stage), Some(micro_batch)) if shape.stages() > shape.ranks() => {
            format!("{stage}{letter}{micro_batch}")
        }
        (_, Some(micro_batch)) => format!("{letter}{micro_batch}"),
        _ => letter.to_string(),
    }
}

fn coloured(text: &str, colour: Colour) -> String {
    let (Colour(r, g, b), Colour(fr, fg, fb)) = (colour, text_on(colour));
    format!("\x1b[48;2;{r};{g};{b};38;2;{fr};{fg};{fb}m{text}\x1b[0m")
}

/// The colour of an operation: that of its kind, in the shade of its stage's place among its rank's stages.
fn colour(event: &Event, shape: &Shape) -> Colour {
    let chunk = event.stage.map_or(0, |stage| chunk_of(shape, event.rank, stage));
    let chunks = if event.kind == EventKind::Update { 1 } else { shape.chunks() };
    of_chunk(event.kind, chunk, chunks)
}

fn chunk_of(shape: &Shape, rank: Rank, stage: pipestep_schedule::Stage) -> usize {
    shape.stages_of(rank).take_while(|&other| other != stage).count()
}

/// The line below: round times where they are.
fn scale(makespan: u64, columns: u64, name_width: usize, width: usize) -> String {
    let unit = time_unit(Duration::from_nanos(makespan));
    let end = Time::from_nanos(makespan).as_nanos() as f64 / unit.size;
    let (at, decimals) = ticks(0.0, end, (columns as usize / 12).max(1));
    let mut line = " ".repeat(name_width);
    for time in at {
        let column = name_width + (time / end.max(f64::MIN_POSITIVE) * columns as f64).round() as usize;
        let label =
            if time == 0.0 { "0".to_owned() } else { format!("{} {}", trimmed(time, decimals), unit.name) };
        if column >= line.chars().count() && column + 1 + label.chars().count() <= width {
            line = format!("{line:column$}|{label}");
        }
    }
    line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    fn plain(sample: &Sample, width: usize) -> String {
        text_gantt(&sample.view(), &sample.outcome.record, TextGantt { width, ink: Ink::Plain })
    }

    #[test]
    fn a_small_step_is_drawn_to_scale() {
        // F 10, B 20, transfers and update 1 ms: the common measure is 1 ms.
        let text = plain(&Sample::new("1f1b", 2, 1, 2), 100);
        let expected = "\
rank 0 F0--------F1--------......................B0------------------..........B1------------------U
rank 1 ...........F0--------B0------------------F1--------B1------------------.....................U
       |0                  |20 ms              |40 ms              |60 ms              |80 ms
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn a_long_step_fits_the_width_and_keeps_its_letters() {
        let text = plain(&Sample::new("1f1b", 8, 1, 64), 100);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let (f, b) = (text.matches('F').count(), text.matches('B').count());
        assert!(f > 50 && b > f, "forwards take a third of the time: {f}, {b}\n{text}");
    }

    #[test]
    fn stages_are_named_where_a_rank_has_several() {
        let text = plain(&Sample::new("interleaved", 2, 2, 2), 100);
        assert!(text.contains("0F0") && text.contains("2F1") && text.contains("3B0"), "{text}");
    }

    #[test]
    fn colours_change_nothing_but_the_colours() {
        let sample = Sample::new("interleaved", 4, 2, 8);
        let options = TextGantt { width: 120, ink: Ink::Ansi };
        let mut text = text_gantt(&sample.view(), &sample.outcome.record, options);
        while let Some(start) = text.find('\x1b') {
            let end = start + text[start..].find('m').unwrap();
            text.replace_range(start..=end, "");
        }
        let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        assert_eq!(letters(&text), letters(&plain(&sample, 120)));
    }

    #[test]
    fn very_many_ranks_are_sampled() {
        let text = plain(&Sample::new("fill-drain", 200, 1, 2), 80);
        assert!(text.lines().count() <= RANKS_DRAWN + 2 && text.contains("one rank in 4 of 200"), "{text}");
    }

    #[test]
    fn split_backwards_and_overlapped_pairs_are_drawn() {
        let text = plain(&Sample::ordered(2, &["0F0 0F1+ 0I0 0W0 0B1"]), 90);
        let expected = "\
rank 0 F0--------F1&I0-------------------------W0--------B1------------------U
       |0                  |20 ms              |40 ms              |60 ms
";
        assert_eq!(text, expected, "\n{text}");
    }
}
