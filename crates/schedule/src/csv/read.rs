//! The text of a schedule file as a shape and orders.

use std::ops::Range;

use super::action::Action;
use super::check::check_comms;
use super::comms::{CommsOrders, CommsStep};
use super::error::{CsvError, StuckCell};
use crate::{Deadlock, Op, OrderError, Orders, Rank, Shape};

/// What a schedule file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvFile {
    /// Ranks, stages and micro-batches as the file implies them; a stage lies on the rank whose row names it.
    pub shape: Shape,
    /// Each rank's operations.
    pub orders: Orders,
    /// The communication actions, if the file has any (`compute_comms`).
    pub comms: Option<CommsOrders>,
}

/// What a schedule file should agree with; what is not given is taken from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of ranks.
    pub ranks: Option<usize>,
    /// The number of stages, all ranks together.
    pub stages: Option<usize>,
    /// The number of micro-batches.
    pub micro_batches: Option<usize>,
}

/// One cell that is not empty.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// Counted from 1.
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) action: Action,
}

/// The cells of a file by row, and what each operation's cell is.
pub(super) struct Cells {
    pub(super) rows: Vec<Vec<Cell>>,
    /// By rank and place in its list, the operation's cell.
    of_ops: Vec<Vec<usize>>,
    /// By rank, the places of the operations that start together.
    brackets: Vec<Vec<Range<usize>>>,
}

/// Reads a schedule file of either format: one with a communication action is `compute_comms`.
///
/// A bracket of one forward and one backward of different stages or micro-batches becomes an overlapped pair; the
/// parts of any other bracket run one after the other.
///
/// # Errors
/// The first thing that is wrong, with row, column, action and reason.
pub fn read(text: &str, expected: &Expected) -> Result<CsvFile, CsvError> {
    let rows = rows(text)?;
    if let Some(ranks) = expected.ranks.filter(|&ranks| ranks != rows.len()) {
        let found = rows.len();
        return Err(CsvError::File(format!(
            "expected one row for each of {ranks} ranks, found {found} rows"
        )));
    }
    let has_comms =
        rows.iter().flatten().any(|cell| matches!(cell.action, Action::Message(..) | Action::Parameters(..)));
    if has_comms {
        refuse_empty_cells(text)?;
    }
    let (orders, cells) = orders(rows)?;
    let shape = shape(&orders, &cells, expected)?;
    orders.validate(&shape).map_err(|error| cells.order_error(error))?;
    let end_of = |rank: Rank, place: usize| {
        let brackets = &cells.brackets[rank.index()];
        let at = brackets.partition_point(|bracket| bracket.end <= place);
        brackets[at].end
    };
    crate::deadlock::check_groups(&orders, &shape, end_of).map_err(|deadlock| cells.deadlock(&deadlock))?;
    let comms = if has_comms { Some(comms(&orders, &shape, &cells)?) } else { None };
    Ok(CsvFile { shape, orders, comms })
}

/// Lines without their ends: CRLF, LF and CR all end one. What follows the last end is no line if it is empty.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        lines.push(line);
        rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix(['\r', '\n'])).unwrap_or("");
    }
    lines
}

/// The cells of a line, quotes undone.
fn cells_of(line: &str, row: usize) -> Result<Vec<String>, CsvError> {
    let mut reader =
        ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
    match reader.records().next() {
        None => Ok(Vec::new()),
        Some(Ok(record)) => Ok(record.iter().map(|cell| cell.trim().to_owned()).collect()),
        Some(Err(error)) => Err(CsvError::Row { row, reason: format!("is no line of cells: {error}") }),
    }
}

fn rows(text: &str) -> Result<Vec<Vec<Cell>>, CsvError> {
    if text.starts_with('\u{feff}') {
        let reason = "starts with a byte order mark: save the file as UTF-8 without one".into();
        return Err(CsvError::Row { row: 1, reason });
    }
    let mut rows = Vec::new();
    for (index, line) in lines(text).into_iter().enumerate() {
        let row = index + 1;
        let mut cells = Vec::new();
        for (index, text) in cells_of(line, row)?.into_iter().enumerate().filter(|(_, text)| !text.is_empty())
        {
            let column = index + 1;
            let wrong = |reason| CsvError::Cell { row, column, cell: text.clone(), reason };
            let action = Action::parse(&text).map_err(wrong)?;
            cells.push(Cell { column, text, action });
        }
        if cells.is_empty() {
            let reason = "holds no action: every row is a rank, a blank line too".into();
            return Err(CsvError::Row { row, reason });
        }
        rows.push(cells);
    }
    if rows.is_empty() {
        return Err(CsvError::File("the file is empty: expected one row for each rank".into()));
    }
    Ok(rows)
}

/// A file with communication runs as it stands, so it has no idle cells.
fn refuse_empty_cells(text: &str) -> Result<(), CsvError> {
    for (index, line) in lines(text).into_iter().enumerate() {
        let cells = cells_of(line, index + 1)?;
        if let Some(empty) = cells.iter().position(String::is_empty) {
            let reason =
                "is empty: a file with communication actions runs as it stands, without idle cells".into();
            let (row, column) = (index + 1, empty + 1);
            return Err(CsvError::Cell { row, column, cell: String::new(), reason });
        }
    }
    Ok(())
}

fn orders(rows: Vec<Vec<Cell>>) -> Result<(Orders, Cells), CsvError> {
    let mut orders = Orders::default();
    let (mut of_ops, mut brackets) = (Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let (mut list, mut places, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (place, cell) in row.iter().enumerate() {
            let ops = match &cell.action {
                Action::Run(op) => vec![*op],
                Action::Bracket(ops) => joined(ops),
                Action::Message(..) | Action::Parameters(..) => continue,
            };
            groups.push(list.len()..list.len() + ops.len());
            places.extend(ops.iter().map(|_| place));
            list.extend(ops);
        }
        if list.is_empty() {
            return Err(CsvError::Row { row: index + 1, reason: "holds no operation".into() });
        }
        orders.push_list(list);
        of_ops.push(places);
        brackets.push(groups);
    }
    Ok((orders, Cells { rows, of_ops, brackets }))
}

/// A forward and a backward run as one; other parts only start together.
fn joined(ops: &[Op]) -> Vec<Op> {
    let mut ops = ops.to_vec();
    if let [first, second] = ops[..] {
        let one_of_each = first.kind.sends_gradient() != second.kind.sends_gradient()
            && (first.kind == crate::Kind::Forward || second.kind == crate::Kind::Forward);
        ops[0].paired = one_of_each;
    }
    ops
}

/// The shape that the operations imply.
fn shape(orders: &Orders, cells: &Cells, expected: &Expected) -> Result<Shape, CsvError> {
    let all = orders.all();
    let stages = 1 + all.iter().map(|op| op.stage.index()).max().unwrap_or(0);
    let micro_batches = 1 + all.iter().map(|op| op.micro_batch.index()).max().unwrap_or(0);
    let most = |given: Option<usize>| given.unwrap_or(all.len());
    let mut rank_of: Vec<Option<Rank>> = vec![None; stages.min(most(expected.stages))];
    for rank in (0..orders.ranks() as u16).map(Rank) {
        for (place, op) in orders.rank(rank).iter().enumerate() {
            let beyond = |what: &str, number: usize, given: Option<usize>| {
                let has = given.map_or_else(
                    || format!("more than the file's {} operations allow", all.len()),
                    |count| format!("but there are {count}, numbered from 0"),
                );
                cells.wrong(rank, place, format!("names {what} {number}, {has}"))
            };
            let (stage, micro_batch) = (op.stage.index(), op.micro_batch.index());
            if stage >= rank_of.len() {
                return Err(beyond("stage", stage, expected.stages));
            }
            if micro_batch >= most(expected.micro_batches) {
                return Err(beyond("micro-batch", micro_batch, expected.micro_batches));
            }
            match rank_of[stage] {
                Some(first) if first != rank => {
                    let reason = format!("is of stage {stage}, which row {} has", first.0 + 1);
                    return Err(cells.wrong(rank, place, reason));
                }
                _ => rank_of[stage] = Some(rank),
            }
        }
    }
    if expected.stages.is_some_and(|count| count > rank_of.len()) {
        return Err(CsvError::File(format!("stage {stages} is in no row")));
    }
    let missing = rank_of.iter().position(Option::is_none);
    if let Some(stage) = missing {
        return Err(CsvError::File(format!("stage {stage} is in no row")));
    }
    let micro_batches = expected.micro_batches.unwrap_or(micro_batches);
    let rank_of = rank_of.into_iter().flatten().collect();
    Ok(Shape::listed(orders.ranks() as u64, rank_of, micro_batches as u64)?)
}

fn comms(orders: &Orders, shape: &Shape, cells: &Cells) -> Result<CommsOrders, CsvError> {
    let mut lists = Vec::with_capacity(cells.rows.len());
    for (rank, row) in cells.rows.iter().enumerate() {
        let mut brackets = cells.brackets[rank].iter();
        let steps = row.iter().filter_map(|cell| match cell.action {
            Action::Run(_) | Action::Bracket(_) => brackets.next().cloned().map(CommsStep::Run),
            Action::Message(message, stage, micro_batch) => {
                Some(CommsStep::Message { message, stage, micro_batch })
            }
            Action::Parameters(action, stage) => Some(CommsStep::Parameters { action, stage }),
        });
        lists.push(steps.collect());
    }
    let comms = CommsOrders { lists };
    check_comms(&comms, orders, shape, cells)?;
    Ok(comms)
}

impl Cells {
    /// The cell at a place of a row, with what is wrong with it.
    pub(super) fn at(&self, rank: usize, place: usize, reason: String) -> CsvError {
        let Cell { column, text, .. } = &self.rows[rank][place];
        CsvError::Cell { row: rank + 1, column: *column, cell: text.clone(), reason }
    }

    /// The cell of an operation, with what is wrong with it.
    fn wrong(&self, rank: Rank, place: usize, reason: String) -> CsvError {
        self.at(rank.index(), self.of_ops[rank.index()][place], reason)
    }

    fn order_error(&self, error: OrderError) -> CsvError {
        match error {
            OrderError::Misplaced { rank, position, op, reason } => {
                let alone =
                    self.rows[rank.index()][self.of_ops[rank.index()][position]].action == Action::Run(op);
                self.wrong(
                    rank,
                    position,
                    if alone { reason } else { format!("holds `{op}`, which {reason}") },
                )
            }
            OrderError::Missing { rank, op } => CsvError::Missing { row: rank.index() + 1, op },
            OrderError::Deadlock(deadlock) => self.deadlock(&deadlock),
            OrderError::Lists { .. } => CsvError::File(error.to_string()),
        }
    }

    fn deadlock(&self, deadlock: &Deadlock) -> CsvError {
        let cells = deadlock.cycle.iter().map(|stuck| {
            let place = self.of_ops[stuck.rank.index()][stuck.position];
            self.stuck(stuck.rank.index(), place, stuck.waits_for.to_string())
        });
        CsvError::Deadlock { cells: cells.collect() }
    }

    pub(super) fn stuck(&self, rank: usize, place: usize, waits_for: String) -> StuckCell {
        let Cell { column, text, .. } = &self.rows[rank][place];
        StuckCell { row: rank + 1, column: *column, cell: text.clone(), waits_for }
    }
}
