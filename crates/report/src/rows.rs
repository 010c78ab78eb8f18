//! One rank's row of a Gantt picture: bars with their numbers, or blended windows where bars are too narrow.

use pipestep_engine::Time;
use pipestep_schedule::Shape;

use crate::font::text_width;
use crate::picture::{Across, Picture};
use crate::theme::{Colour, PAPER, of_chunk, of_kind, text_on};
use crate::{Event, EventKind};

/// Rows with narrower bars than this many points on average are blended.
const NARROW: f64 = 1.4;
/// A blended window is this wide, in points, and wider where it would hold few operations.
const NARROWEST_WINDOW: f64 = 2.0;
const WIDEST_WINDOW: f64 = 12.0;
/// Gaps from this width on, in points, are left white between blended windows.
const VISIBLE_GAP: f64 = 1.0;
/// Micro-batch numbers are no smaller than this, and no larger.
const NUMBER_SIZES: (f64, f64) = (7.5, 13.0);
/// Rows from this height on have lanes for messages.
pub(crate) const LANES_FROM: f64 = 10.0;

/// What all rows of a panel share.
#[derive(Debug)]
pub(crate) struct RowStyle {
    /// Where time zero and the end of the axis are, in points.
    pub(crate) across: (f64, f64),
    /// The end of the axis in ns.
    pub(crate) span: f64,
    /// Height of a row in points.
    pub(crate) height: f64,
    /// Which of its rank's stages each stage is, from 0.
    chunk_of: Vec<usize>,
    chunks: usize,
    /// By kind: the size of the numbers, if they have room.
    numbers: [Option<f64>; EventKind::ALL.len()],
}

impl RowStyle {
    /// The style for the events of all ranks: numbers are chosen for all rows alike.
    pub(crate) fn new(shape: &Shape, events: &[Event], across: (f64, f64), span: f64, height: f64) -> Self {
        let mut stages_seen = vec![0; shape.ranks()];
        let chunk_of = (0..shape.stages() as u16).map(|stage| {
            let seen = &mut stages_seen[shape.rank_of(pipestep_schedule::Stage(stage)).index()];
            *seen += 1;
            *seen - 1
        });
        let chunk_of = chunk_of.collect();
        let mut style = Self {
            across,
            span,
            height,
            chunk_of,
            chunks: shape.chunks(),
            numbers: [None; EventKind::ALL.len()],
        };
        let widest = (shape.micro_batches().max(1) - 1).to_string();
        for kind in EventKind::ALL {
            style.numbers[kind as usize] = style.number_size(events, kind, &widest);
        }
        style
    }

    /// The size at which the widest number fits a block of this kind, of middling length and where they pair up
    /// half as high.
    fn number_size(&self, events: &[Event], kind: EventKind, widest: &str) -> Option<f64> {
        if matches!(kind, EventKind::Update | EventKind::Activation | EventKind::Gradient) {
            return None;
        }
        let mut lengths: Vec<u64> =
            events.iter().filter(|e| e.kind == kind).map(|e| e.end.since(e.start).as_nanos()).collect();
        let middle = lengths.len() / 2;
        let (_, &mut length, _) =
            lengths.get_mut(..).filter(|all| !all.is_empty())?.select_nth_unstable(middle);
        let room = length as f64 / self.span * (self.across.1 - self.across.0) - 3.0;
        let (smallest, largest) = NUMBER_SIZES;
        let by_height = (self.bar_height() * 0.62).min(largest);
        let by_width = by_height * room / text_width(widest, by_height.max(1.0)).max(1e-9);
        let size = by_height.min(by_width);
        (size >= smallest).then_some(size)
    }

    /// Where an instant is, in points.
    pub(crate) fn x(&self, time: Time) -> f64 {
        self.across.0 + time.as_nanos() as f64 / self.span * (self.across.1 - self.across.0)
    }

    fn bar_height(&self) -> f64 {
        let share = if self.height >= LANES_FROM { 0.72 } else { 0.88 };
        (self.height * share).max(1.0)
    }

    /// The top and the bottom of the bars of a row whose top is at `top`.
    pub(crate) fn bar(&self, top: f64) -> (f64, f64) {
        let middle = top + self.height / 2.0;
        (middle - self.bar_height() / 2.0, middle + self.bar_height() / 2.0)
    }

    /// The colour of an operation: its kind in the shade of its chunk.
    pub(crate) fn colour(&self, event: &Event) -> Colour {
        match event.stage {
            Some(stage) if !event.kind.is_message() => {
                of_chunk(event.kind, self.chunk_of[stage.index()], self.chunks)
            }
            _ => of_kind(event.kind),
        }
    }

    /// Whether a rank's bars are too narrow to be told apart.
    pub(crate) fn is_blended(&self, mine: &[Event]) -> bool {
        let work = || mine.iter().filter(|event| !event.kind.is_message());
        work().count() > 1 && self.mean_width(work()) < NARROW
    }

    fn mean_width<'a>(&self, work: impl Iterator<Item = &'a Event>) -> f64 {
        let (count, widths) = work
            .fold((0, 0.0), |(count, sum), event| (count + 1, sum + self.x(event.end) - self.x(event.start)));
        widths / f64::from(count.max(1))
    }

    /// Draws one rank's events, sorted by start, with the row's top at `top`.
    pub(crate) fn draw(&self, picture: &mut Picture, top: f64, mine: &[Event]) {
        let work: Vec<&Event> = mine.iter().filter(|event| !event.kind.is_message()).collect();
        let bar = self.bar(top);
        if self.is_blended(mine) {
            return self.blend(picture, bar, &work);
        }
        self.bars(picture, bar, &work);
        if self.height >= LANES_FROM {
            let thick = (self.height * 0.09).clamp(1.5, 3.0);
            self.lane(picture, (bar.0 - thick - 0.5, bar.0 - 0.5), mine, EventKind::Gradient);
            self.lane(picture, (bar.1 + 0.5, bar.1 + 0.5 + thick), mine, EventKind::Activation);
        }
    }

    fn bars(&self, picture: &mut Picture, (top, bottom): (f64, f64), work: &[&Event]) {
        for (index, event) in work.iter().enumerate() {
            let (left, right) = (self.x(event.start), self.x(event.end));
            // A hair of paper between bars; a bar too narrow for it keeps its width.
            let right = if right - left > 2.5 { right - 0.5 } else { right };
            let middle = f64::midpoint(top, bottom);
            let (top, bottom) = match half_of_pair(work, index) {
                Some(0) => (top, middle - 0.25),
                Some(_) => (middle + 0.25, bottom),
                None => (top, bottom),
            };
            let colour = self.colour(event);
            picture.fill([left, top, right, bottom], colour);
            if let (Some(size), Some(number)) = (self.numbers[event.kind as usize], event.micro_batch) {
                let size = size.min((bottom - top) * 0.9);
                let text = number.to_string();
                if size >= NUMBER_SIZES.0 * 0.8 && text_width(&text, size) + 1.0 <= right - left {
                    let at = (f64::midpoint(left, right), f64::midpoint(top, bottom));
                    picture.text(text, at, size, Across::Middle, text_on(colour));
                }
            }
        }
    }

    /// Stretches of work without a visible gap are cut into windows of several operations, each in the mean
    /// colour of what runs in it: what single bars would look like from afar. Starts and ends stay sharp, and
    /// the number of windows is bounded however many operations there are.
    fn blend(&self, picture: &mut Picture, (top, bottom): (f64, f64), work: &[&Event]) {
        let mean = self.mean_width(work.iter().copied());
        let window = (12.0 * mean).clamp(NARROWEST_WINDOW, WIDEST_WINDOW);
        for stretch in work.chunk_by(|one, next| self.x(next.start) - self.x(one.end) < VISIBLE_GAP) {
            let left = self.x(stretch[0].start);
            let right = stretch.iter().map(|event| self.x(event.end)).fold(left, f64::max);
            let windows = ((right - left) / window).ceil().max(1.0);
            let width = (right - left).max(0.5) / windows;
            let mut sums = vec![[0.0_f64; 4]; windows as usize];
            for event in stretch {
                self.share_out(event, &mut sums, |x| (x - left) / width);
            }
            for (place, colour) in sums.iter().map(mean_on_paper).enumerate() {
                let edge = |place: usize| left + place as f64 * width;
                picture.fill([edge(place), top, edge(place + 1), bottom], colour);
            }
        }
    }

    /// Adds an event's colour to the windows that it covers, by the share of each that it covers.
    fn share_out(&self, event: &Event, sums: &mut [[f64; 4]], place: impl Fn(f64) -> f64) {
        let (from, to) = (place(self.x(event.start)), place(self.x(event.end)));
        let Colour(red, green, blue) = self.colour(event);
        let parts = [f64::from(red), f64::from(green), f64::from(blue), 1.0];
        let covered = from.max(0.0) as usize..(to.ceil().max(0.0) as usize).min(sums.len());
        for window in covered {
            let share = to.min(window as f64 + 1.0) - from.max(window as f64);
            for (sum, part) in sums[window].iter_mut().zip(parts) {
                *sum += share * part;
            }
        }
    }

    /// Messages as thin marks; those that touch on the picture become one.
    fn lane(&self, picture: &mut Picture, (top, bottom): (f64, f64), mine: &[Event], kind: EventKind) {
        let mut open: Option<(f64, f64)> = None;
        let colour = of_kind(kind);
        for event in mine.iter().filter(|event| event.kind == kind && event.start < event.end) {
            let (left, right) = (self.x(event.start), self.x(event.end));
            open = match open {
                Some((start, end)) if left < end + 0.5 => Some((start, end.max(right))),
                Some((start, end)) => {
                    picture.fill([start, top, end, bottom], colour);
                    Some((left, right))
                }
                None => Some((left, right)),
            };
        }
        if let Some((start, end)) = open {
            picture.fill([start, top, end, bottom], colour);
        }
    }
}

/// Which half of an overlapped pair an event is, if of any.
fn half_of_pair(work: &[&Event], index: usize) -> Option<usize> {
    if index > 0 && work[index].is_paired_with(work[index - 1]) {
        return Some(1);
    }
    (index + 1 < work.len() && work[index].is_paired_with(work[index + 1])).then_some(0)
}

/// The mean of what fills a window, the rest being paper.
fn mean_on_paper(&[red, green, blue, filled]: &[f64; 4]) -> Colour {
    let paper = (1.0 - filled).max(0.0);
    let part =
        |sum: f64, paper_part: u8| ((sum + paper * f64::from(paper_part)) / (filled + paper)).round() as u8;
    Colour(part(red, PAPER.0), part(green, PAPER.1), part(blue, PAPER.2))
}
