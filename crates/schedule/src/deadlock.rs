//! Whether orders can run to the end, without a clock: each rank runs ahead until an input is missing.

use crate::order::{Deadlock, Stuck};
use crate::{Kind, Op, Orders, Rank, Shape};

/// Runs the lists without times; what is stuck at the end is a deadlock, named by one circle of ranks.
pub(crate) fn check(orders: &Orders, shape: &Shape) -> Result<(), Deadlock> {
    check_groups(orders, shape, |rank, place| {
        let list = orders.rank(rank);
        (place + 1 + usize::from(list[place].paired)).min(list.len())
    })
}

/// The same, where the operations of a list that start together are given by the end of the group that starts at
/// a place.
pub(crate) fn check_groups(
    orders: &Orders,
    shape: &Shape,
    end_of: impl Fn(Rank, usize) -> usize,
) -> Result<(), Deadlock> {
    let ranks = shape.ranks();
    let mut done = vec![0_u8; shape.stages() * shape.micro_batches()];
    let mut position = vec![0_usize; ranks];
    let mut work: Vec<u16> = (0..ranks as u16).collect();
    while let Some(rank) = work.pop() {
        let list = orders.rank(Rank(rank));
        while position[rank as usize] < list.len() {
            let start = position[rank as usize];
            let group = &list[start..end_of(Rank(rank), start)];
            if !group.iter().all(|&op| has_inputs(shape, &done, op)) {
                break;
            }
            for &op in group {
                mark(shape, &mut done, op);
                position[rank as usize] += 1;
                let consumer =
                    if op.kind == Kind::Forward { shape.next(op.stage) } else { shape.previous(op.stage) };
                work.extend(consumer.map(|stage| shape.rank_of(stage).0).filter(|&to| to != rank));
            }
        }
    }
    let stuck = (0..ranks as u16).map(Rank).find(|&rank| position[rank.index()] < orders.rank(rank).len());
    match stuck {
        None => Ok(()),
        Some(rank) => Err(circle(orders, shape, &done, &position, rank, end_of)),
    }
}

/// Notes in `done` (by stage and micro-batch) that an operation has run.
pub(crate) fn mark(shape: &Shape, done: &mut [u8], op: Op) {
    done[op.stage.index() * shape.micro_batches() + op.micro_batch.index()] |= 1 << op.kind as u8;
}

/// Whether everything that an operation needs is noted in `done`.
pub(crate) fn has_inputs(shape: &Shape, done: &[u8], op: Op) -> bool {
    missing_input(shape, done, op).is_none()
}

/// The operation whose result `op` still lacks, if any.
fn missing_input(shape: &Shape, done: &[u8], op: Op) -> Option<Op> {
    let has = |input: Op| {
        let kinds = done[input.stage.index() * shape.micro_batches() + input.micro_batch.index()];
        let gradient = 1 << Kind::Backward as u8 | 1 << Kind::InputGradient as u8;
        let wanted = if input.kind == Kind::Backward { gradient } else { 1 << input.kind as u8 };
        kinds & wanted != 0
    };
    let on = |kind, stage| Op::new(kind, stage, op.micro_batch);
    let own = match op.kind {
        Kind::Forward => None,
        Kind::Backward | Kind::InputGradient => Some(on(Kind::Forward, op.stage)),
        Kind::WeightGradient => Some(on(Kind::InputGradient, op.stage)),
    };
    let other = match op.kind {
        Kind::Forward => shape.previous(op.stage).map(|stage| on(Kind::Forward, stage)),
        Kind::Backward | Kind::InputGradient => shape.next(op.stage).map(|stage| on(Kind::Backward, stage)),
        Kind::WeightGradient => None,
    };
    [own, other].into_iter().flatten().find(|&input| !has(input))
}

/// Follows "waits for" from one stuck rank to the next until a rank comes up twice.
fn circle(
    orders: &Orders,
    shape: &Shape,
    done: &[u8],
    position: &[usize],
    from: Rank,
    end_of: impl Fn(Rank, usize) -> usize,
) -> Deadlock {
    let mut path: Vec<Stuck> = Vec::new();
    let mut rank = from;
    loop {
        if let Some(start) = path.iter().position(|stuck| stuck.rank == rank) {
            return Deadlock { cycle: path.split_off(start) };
        }
        let start = position[rank.index()];
        let found = (start..end_of(rank, start)).find_map(|position| {
            let op = orders.rank(rank)[position];
            missing_input(shape, done, op).map(|waits_for| Stuck { rank, position, op, waits_for })
        });
        let stuck = found.expect("a rank that is stuck lacks an input");
        path.push(stuck);
        rank = shape.rank_of(stuck.waits_for.stage);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Op, OrderError, Orders, Placement, Shape};

    fn orders(lists: [&str; 2]) -> Orders {
        Orders::from_lists(lists.map(|list| list.split(' ').map(|op| op.parse::<Op>().unwrap())))
    }

    #[test]
    fn a_deadlock_names_the_circle() {
        let shape = Shape::new(2, 1, 2, Placement::Loop).unwrap();
        let crossed = orders(["0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"]);
        let OrderError::Deadlock(deadlock) = crossed.validate(&shape).unwrap_err() else {
            panic!("no deadlock")
        };
        assert_eq!(
            deadlock.to_string(),
            "rank 0 is at `0B0` (position 1), which waits for `1B0`; \
             rank 1 is at `1F1` (position 1), which waits for `0F1`"
        );
    }

    #[test]
    fn orders_that_run_are_accepted_and_broken_ones_are_not() {
        let shape = Shape::new(2, 1, 2, Placement::Loop).unwrap();
        let good = orders(["0F0 0F1 0B0 0B1", "1F0 1I0 1W0 1F1 1B1"]);
        assert_eq!(good.validate(&shape), Ok(()));
        for (lists, expected) in [
            (["0F0 0B0 0B1", "1F0 1B0 1F1 1B1"], "comes before its forward"),
            (["0F0 0F1 0B0", "1F0 1B0 1F1 1B1"], "rank 0: `0B1` is missing"),
            (["0F0 0F1 0B0 0B0", "1F0 1B0 1F1 1B1"], "twice"),
            (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 0B1"], "belongs to rank 0"),
            (["0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1B1"], "`1W0` is missing"),
            (["0F0 0F1 0B0 0B1", "1F0 1W0 1F1 1B1"], "before its input-gradient"),
            (["0F0 0F1 0B0 0B1", "1F0 1I0 1B0 1B1"], "after a split backward"),
            (["0F0 0F2 0B0 0B1", "1F0 1B0 1F1 1B1"], "names a micro-batch"),
            (["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 7B1"], "past the last, 1"),
        ] {
            let error = orders(lists).validate(&shape).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
