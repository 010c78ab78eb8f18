//! The building blocks that are tried, the most promising first.

use super::skeleton::{Block, Delays};
use super::table::Table;

/// Delays that are tried for one leg of the way, in units, the shorter and the more useful ones first.
const LEG: [u64; 4] = [0, 1, 3, 2];
/// How many delays are looked at together; of those that do not fit the limit only a part is slowed and tried.
const HANDFUL: usize = 16;
const SLOWED: usize = 6;

/// Blocks for two chunks on a V: delays on each of the four legs and at the turn to the backward.
pub(super) fn v_shaped<'a>(table: &'a Table, limit: &'a [i64]) -> impl Iterator<Item = Block> + 'a {
    let mut all: Vec<[usize; 5]> = Vec::new();
    for number in 0..LEG.len().pow(4) * 5 {
        let mut left = number;
        let mut digit = |base: usize| {
            let digit = left % base;
            left /= base;
            digit
        };
        let (first, second, third, fourth) =
            (digit(LEG.len()), digit(LEG.len()), digit(LEG.len()), digit(LEG.len()));
        all.push([fourth, third, second, first, digit(5)]);
    }
    // Without a split, backwards are long and collide more: delays of forwards come last.
    let weight =
        |[f0, f1, b0, b1, turn]: [usize; 5]| (f0 + f1) * if table.split { 1 } else { 2 } + b0 + b1 + turn;
    all.sort_by_key(|&delays| (weight(delays), delays));
    let handfuls: Vec<Vec<[usize; 5]>> = all.chunks(HANDFUL).map(<[_]>::to_vec).collect();
    handfuls.into_iter().flat_map(move |handful| {
        let delays = |[f0, f1, b0, b1, turn]: [usize; 5]| Delays {
            forward: vec![LEG[f0], LEG[f1]],
            backward: vec![LEG[b0], LEG[b1]],
            turns: vec![0, turn as u64, 0],
        };
        let both = |delays: Delays| [true, false].map(|packed| Block::new(table, &delays, packed));
        let blocks = handful.into_iter().map(delays).flat_map(both);
        let (fitting, others): (Vec<Block>, Vec<Block>) = blocks.partition(|block| block.fits(table, limit));
        let slowed = others.into_iter().filter_map(|block| block.slowed(table, limit));
        fitting.into_iter().chain(slowed.take(SLOWED).collect::<Vec<_>>())
    })
}

/// Parts of the natural number of first forwards that are tried, in hundredths.
const PARTS: [u64; 16] = [100, 50, 98, 102, 97, 99, 101, 95, 96, 103, 105, 90, 60, 70, 80, 110];
/// What is added before rounding down, in hundredths of a forward.
const ROUNDING: [u64; 5] = [100, 175, 125, 150, 199];
/// Steps between neighbouring ranks' numbers of first forwards, in hundredths.
const STEPS: [u64; 6] = [100, 200, 150, 125, 175, 225];

/// Blocks for one chunk a rank: each rank runs some forwards first and then alternates. The natural number of
/// first forwards is what fits between a rank's first forward and the gradient that comes back.
pub(super) fn one_chunk<'a>(
    table: &'a Table,
    limit: &'a [i64],
    micro_batches: u64,
) -> impl Iterator<Item = Block> + 'a {
    let ranks = table.ranks() as u64;
    let round_trips = round_trips(table);
    let most = move |rank: usize| {
        let room = (limit[rank] / table.saved(rank).max(1)) as u64;
        room.min(micro_batches).max(1)
    };
    let even_steps = STEPS.map(|step| (0..ranks).map(|rank| 1 + step * (ranks - 1 - rank) / 100).collect());
    let natural = PARTS.into_iter().flat_map(|part| ROUNDING.map(|rounding| (part, rounding)));
    let natural = natural.map(move |(part, rounding)| {
        let forwards = |(rank, &away): (usize, &u64)| {
            let forward = u128::from(table.chunks[rank][0].forward.max(1));
            let count = (u128::from(part) * u128::from(away) / forward + u128::from(rounding)) / 100;
            count.min(u128::from(micro_batches)) as u64
        };
        round_trips.iter().enumerate().map(forwards).collect()
    });
    let mut tried: Vec<Vec<u64>> = Vec::new();
    even_steps.into_iter().chain(natural).filter_map(move |warm_up: Vec<u64>| {
        let kept = warm_up.iter().enumerate().map(|(rank, &forwards)| forwards.min(most(rank)).max(1));
        let kept: Vec<u64> = kept.collect();
        let fresh = !tried.contains(&kept);
        fresh.then(|| {
            tried.push(kept.clone());
            Block::alternating(&kept)
        })
    })
}

/// The least time between the end of each rank's first forward and the arrival of its gradient.
fn round_trips(table: &Table) -> Vec<u64> {
    let mut times = vec![0; table.ranks()];
    for rank in (0..table.ranks() - 1).rev() {
        let next = table.chunks[rank + 1][0];
        let travel = table.places[rank].activation + table.places[rank + 1].gradient;
        times[rank] = times[rank + 1] + next.forward + next.backward + travel;
    }
    times
}
