//! The course of fixed orders: all that the clock-free pass finds out as it goes, found out once for all runs.
//!
//! Which operation runs when in the pass depends on the orders alone, never on lengths. So one pass over the orders
//! notes the operations in an order in which every input is there before it is read, and with each its rank, what it
//! reads and what it fills. A run then asks nothing any more: it goes down the list with the lengths of eight runs.
//!
//! Instants lie in *cells*, one for each rank, each link and each result on its way. A result's cell is free again once
//! it is read, so there are about as many of them as results can be on their way at once, and all cells stay in the
//! processor's first cache however many micro-batches there are. Lengths lie in the order of the course, so that they
//! are read as one stream.

use pipestep_schedule::{Kind, Op, Orders, Rank};

use super::lanes::Lanes;
use crate::dataflow::wave::{Run, Wave};
use crate::lengths::Usual;
use crate::observe::Observer;
use crate::rows::{NONE, Row, Rows};
use crate::{Inputs, StepError};

/// The operations of some orders in the order in which the clock-free pass runs them.
#[derive(Clone, Debug)]
pub(super) struct Course {
    steps: Vec<Step>,
    /// How many cells there are; those of the ranks come first.
    cells: usize,
    ranks: usize,
    /// How many lengths a run has: one for each operation and, after it, one for its message.
    pub(super) lengths: usize,
    /// Where the length of each operation is, by stage, micro-batch and kind; [`NONE`] if it is not in the orders.
    places: Vec<u32>,
    micro_batches: usize,
}

/// One operation: numbers of cells.
#[derive(Clone, Copy, Debug)]
struct Step {
    rank: u32,
    reads: u32,
    fills: u32,
    message: Message,
}

/// Whether an operation sends a message.
#[derive(Clone, Copy, Debug)]
enum Message {
    No,
    /// It never waits.
    Unlimited,
    /// It waits for its link, whose cell this is.
    Queued(u32),
}

impl Course {
    /// The course of orders whose lists are right for the step, and in which nothing runs as one pair.
    ///
    /// # Errors
    /// [`StepError`] if the orders deadlock.
    pub(super) fn new(inputs: &Inputs, orders: &Orders) -> Result<Self, StepError> {
        let (shape, count) = (inputs.shape(), orders.all().len());
        let (rows, mut noted) = (Rows::new(inputs), Noted(Vec::with_capacity(count)));
        let mut run = Run { inputs, rows: &rows, orders, lengths: Usual, observer: &mut noted };
        Wave::default().run(&mut run, &mut ())?;
        let mut course = Self {
            steps: Vec::with_capacity(count),
            cells: 0,
            ranks: shape.ranks(),
            lengths: 0,
            places: vec![NONE; shape.stages() * shape.micro_batches() * Kind::ALL.len()],
            micro_batches: shape.micro_batches(),
        };
        let mut cells = Cells::new(shape.ranks(), &rows);
        for op in noted.0.into_iter().map(|place| orders.all()[place as usize]) {
            course.push(shape.rank_of(op.stage), rows.of(op), op, &mut cells);
        }
        course.cells = cells.count as usize;
        Ok(course)
    }

    fn push(&mut self, rank: Rank, row: &Row, op: Op, cells: &mut Cells) {
        let message = match row.link {
            _ if !row.sends => Message::No,
            NONE => Message::Unlimited,
            link => Message::Queued(cells.first_link + link),
        };
        let index = self.index(op);
        self.places[index] = self.lengths as u32;
        self.lengths += if row.sends { 2 } else { 1 };
        let (reads, fills) = (cells.read(row, op), cells.fill(row, op));
        self.steps.push(Step { rank: u32::from(rank.0), reads, fills, message });
    }

    /// Where the length of an operation is, if the orders have it.
    #[inline]
    pub(super) fn place(&self, op: Op) -> Option<usize> {
        let place = self.places[self.index(op)];
        (place != NONE).then_some(place as usize)
    }

    #[inline]
    fn index(&self, op: Op) -> usize {
        (op.stage.index() * self.micro_batches + op.micro_batch.index()) * Kind::ALL.len() + op.kind as usize
    }

    /// When each rank ends in each of eight runs that begin at `setup`, given their lengths.
    pub(super) fn run(&self, setup: Lanes, lengths: &[Lanes]) -> Vec<Lanes> {
        let mut cells = vec![Lanes::ZERO; self.cells];
        cells[..self.ranks].fill(setup);
        let mut lengths = lengths.iter();
        let mut next = || lengths.next().expect("a length for each operation and message");
        for step in &self.steps {
            let start = cells[step.rank as usize].latest(&cells[step.reads as usize]);
            let end = start.plus(next());
            cells[step.rank as usize] = end;
            let arrival = match step.message {
                Message::No => end,
                Message::Unlimited => end.plus(next()),
                Message::Queued(link) => {
                    let arrival = end.latest(&cells[link as usize]).plus(next());
                    cells[link as usize] = arrival;
                    arrival
                }
            };
            cells[step.fills as usize] = arrival;
        }
        cells.truncate(self.ranks);
        cells
    }
}

/// Which cell is whose while a course is made.
struct Cells {
    /// How many there are so far.
    count: u32,
    first_link: u32,
    /// Always zero: what needs no input reads it.
    zero: u32,
    /// Takes results that nobody needs.
    unread: u32,
    /// The cell of each slot of the table that [`Rows`] describe, for results on their way.
    slots: Vec<u32>,
    /// Cells whose results are read.
    free: Vec<u32>,
}

impl Cells {
    fn new(ranks: usize, rows: &Rows) -> Self {
        let first_link = ranks as u32;
        let zero = first_link + rows.links as u32;
        let (slots, free) = (vec![NONE; rows.slots], Vec::new());
        Self { count: zero + 2, first_link, zero, unread: zero + 1, slots, free }
    }

    /// The cell that an operation reads. Nothing else reads it, so the next result can lie in it, even that of the same
    /// operation.
    fn read(&mut self, row: &Row, op: Op) -> u32 {
        if !row.reads() {
            return self.zero;
        }
        let cell = self.slots[(row.input + op.micro_batch.0) as usize];
        self.free.push(cell);
        cell
    }

    fn fill(&mut self, row: &Row, op: Op) -> u32 {
        if row.receiver == NONE {
            return self.unread;
        }
        let cell = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.slots[(row.output + op.micro_batch.0) as usize] = cell;
        cell
    }
}

/// The places of operations, in the order in which they run.
struct Noted(Vec<u32>);

impl Observer for &mut Noted {
    #[inline]
    fn ran(&mut self, place: usize, _start: u64, _end: u64) {
        self.0.push(place as u32);
    }
}
