//! What the tests share: plans by name, orders as text, costs of equal stages.

use pipestep_schedule::{Options, Orders, Plan, Rank, Refusal, Shape, Stage, Weights, find, settle};

/// The shape that a schedule takes for these numbers.
pub(crate) fn shape_of(name: &str, ranks: usize, chunks: usize, micro_batches: usize) -> Shape {
    let placement = find(name).expect("in the registry").entry().placement;
    Shape::new(ranks as u64, chunks as u64, micro_batches as u64, placement).unwrap()
}

/// The orders of a schedule; those of an online policy as it decides when messages never queue.
pub(crate) fn plan(
    name: &str,
    shape: &Shape,
    weights: &Weights,
    options: &[(&str, u64)],
) -> Result<Orders, Refusal> {
    let options = Options(options.iter().map(|&(name, value)| (name.to_owned(), value)).collect());
    Ok(match find(name).expect("in the registry").plan(shape, weights, &options)? {
        Plan::Fixed(orders) => orders,
        Plan::Online(mut policy) => settle(policy.as_mut(), shape, weights),
    })
}

/// Our schedule for a class of PyTorch, with the options that make it the same.
pub(crate) fn of_class(class: &str) -> (&'static str, &'static [(&'static str, u64)]) {
    let schedules = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    let entry = schedules.into_iter().find(|entry| entry.torch == Some(class)).expect("a class we have");
    // PyTorch's GPipe runs its backwards in rising order.
    (entry.name, if class == "GPipe" { &[("backward_order", 1)] } else { &[] })
}

/// One line a rank, `(0F3;3B1)OVERLAP_F_B` for pairs.
pub(crate) fn text(orders: &Orders) -> String {
    let row = |rank| {
        let mut cells = Vec::new();
        let mut list = orders.rank(Rank(rank)).iter();
        while let Some(op) = list.next() {
            cells.push(match list.next_if_paired(op.paired) {
                Some(second) => format!("({op};{second})OVERLAP_F_B"),
                None => op.to_string(),
            });
        }
        cells.join(",")
    };
    (0..orders.ranks() as u16).map(row).collect::<Vec<_>>().join("\n")
}

trait NextIf<T> {
    fn next_if_paired(&mut self, paired: bool) -> Option<T>;
}

impl<T, I: Iterator<Item = T>> NextIf<T> for I {
    fn next_if_paired(&mut self, paired: bool) -> Option<T> {
        if paired { self.next() } else { None }
    }
}

/// FNV-1a, 64 bits, as in the data files.
pub(crate) fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Lines of a data file that are no comments, cut into words.
pub(crate) fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split(' ').collect()).collect()
}

/// Costs of equal stages: F, I and W of one chunk, and the time of a message between ranks. Each rank saves
/// 12,000,000 bytes a micro-batch, of which a share in hundredths is freed at `I`.
pub(crate) fn equal(shape: &Shape, times: [u64; 3], message: u64, released: u64) -> Weights {
    let [forward, input, weight] = times;
    let stages = shape.stages();
    let crossing = |from: Stage, to: Option<Stage>| {
        let crosses = to.is_some_and(|to| shape.rank_of(to) != shape.rank_of(from));
        if crosses { message } else { 0 }
    };
    let every = || (0..stages as u16).map(Stage);
    let saved = 12_000_000 / if shape.copies() == 2 { 1 } else { shape.chunks() as u64 };
    Weights {
        forward: vec![forward; stages],
        backward: vec![input + weight; stages],
        input_gradient: vec![input; stages],
        weight_gradient: vec![weight; stages],
        activation: every().map(|stage| crossing(stage, shape.next(stage))).collect(),
        gradient: every().map(|stage| crossing(stage, shape.previous(stage))).collect(),
        saved: vec![saved; stages],
        released_at_input_gradient: vec![(saved * released / 100) as i64; stages],
        limit: None,
    }
}
