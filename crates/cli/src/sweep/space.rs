//! The space of a sweep: the cross product of its keys' values, numbered with the last key fastest.

use std::borrow::Cow;

use anyhow::{Context, Result, bail};
use pipestep_scenario::{Axis, Override, Sweep};

/// More points than this are refused; at a thousand a second they would take months.
const MOST_POINTS: u64 = 1 << 32;

/// The keys that are swept.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    axes: Vec<Axis>,
    sizes: Vec<u64>,
    points: u64,
}

impl Space {
    /// The keys of `[sweep]` and of `--vary`. A key of both takes the values of `--vary`; one of `[sweep]` that
    /// `--set` names keeps that one value.
    ///
    /// # Errors
    /// A `--vary` that cannot be read; no keys at all; too many points.
    pub(crate) fn new(written: &Sweep, vary: &[String], set: &[String]) -> Result<Self> {
        let sweep = varied(written, vary, set)?;
        if sweep.axes.is_empty() {
            bail!(
                "nothing to sweep: the scenario has no `[sweep]`; write `--vary pipeline.micro_batches=1..64`"
            );
        }
        let sizes: Vec<u64> = sweep.axes.iter().map(|axis| axis.values.len() as u64).collect();
        let product = sizes.iter().try_fold(1_u64, |all, &size| all.checked_mul(size));
        let points = product.filter(|&points| points <= MOST_POINTS);
        let points = points.with_context(|| format!("the sweep has more than {MOST_POINTS} points"))?;
        Ok(Self { axes: sweep.axes, sizes, points })
    }

    /// How many points there are.
    pub(crate) const fn points(&self) -> u64 {
        self.points
    }

    /// The keys with their values.
    pub(crate) fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The values of a point, key by key.
    pub(crate) fn at(&self, point: u64) -> Vec<Cow<'_, str>> {
        let places = places(&self.sizes, point);
        self.axes.iter().zip(places).filter_map(|(axis, place)| axis.values.get(place as usize)).collect()
    }

    /// The overrides that make a scenario that of a point.
    pub(crate) fn overrides(&self, point: u64) -> impl Iterator<Item = Override> {
        let places = places(&self.sizes, point);
        self.axes.iter().zip(places).filter_map(|(axis, place)| axis.at(place as usize))
    }
}

/// The keys of a table and of `--vary`, less those that `--set` names.
///
/// # Errors
/// A `--vary` that cannot be read, or that contradicts a `--set`.
pub(crate) fn varied(written: &Sweep, vary: &[String], set: &[String]) -> Result<Sweep> {
    let is_set = |key: &str| set.iter().any(|set| key_of(set) == Some(key));
    let mut sweep = written.clone();
    sweep.axes.retain(|axis| !is_set(&axis.key));
    for text in vary {
        let axis = Axis::vary(text)?;
        if is_set(&axis.key) {
            bail!("`{}` is both set and varied: leave out one of the two", axis.key);
        }
        sweep.vary(axis);
    }
    Ok(sweep)
}

/// Which value of each of the axes, of these sizes, a point takes: the last one changes fastest.
pub(crate) fn places(sizes: &[u64], mut point: u64) -> Vec<u64> {
    let mut places: Vec<u64> = sizes
        .iter()
        .rev()
        .map(|&size| {
            let place = point % size;
            point /= size;
            place
        })
        .collect();
    places.reverse();
    places
}

/// The key of a `KEY=VALUE`.
fn key_of(text: &str) -> Option<&str> {
    text.split_once('=').map(|(key, _)| key.trim())
}

/// Which points of a sweep this process computes: every `of`-th, from the `index`-th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    pub(crate) index: u64,
    /// At least `index`.
    pub(crate) of: u64,
}

impl Shard {
    /// All points.
    pub(crate) const WHOLE: Self = Self { index: 1, of: 1 };

    /// `3/8`, the third of eight.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            Some(Self { index: index.trim().parse().ok()?, of: of.trim().parse().ok()? })
        });
        match numbers {
            Some(shard) if (1..=shard.of).contains(&shard.index) => Ok(shard),
            _ => bail!("`--shard {text}`: expected K/N with K from 1 to N, such as `1/8`"),
        }
    }

    /// How many of `points` are its own.
    pub(crate) const fn count(self, points: u64) -> u64 {
        (points + self.of - self.index) / self.of
    }

    /// The number, in the whole sweep, of its `position`-th point.
    pub(crate) const fn point(self, position: u64) -> u64 {
        position * self.of + self.index - 1
    }

    /// The position of a point that is its own; `None` for those of other shards.
    pub(crate) const fn position(self, point: u64) -> Option<u64> {
        if point % self.of == self.index - 1 { Some(point / self.of) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(file: &[&str], vary: &[&str], set: &[&str]) -> Result<Space> {
        let words = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let axes = file.iter().map(|text| Axis::vary(text).expect("it is right")).collect();
        Space::new(&Sweep { axes }, &words(vary), &words(set))
    }

    #[test]
    fn the_last_key_changes_fastest() {
        let space = space(&["pipeline.ranks=1,2"], &["pipeline.chunks=3..5"], &[]).expect("two keys");
        let points: Vec<String> = (0..space.points()).map(|point| space.at(point).join("")).collect();
        assert_eq!(points, ["13", "14", "15", "23", "24", "25"]);
        assert_eq!(space.overrides(4).count(), 2);
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = ["pipeline.ranks=1,2", "pipeline.chunks=3"];
        let varied = space(&file, &["pipeline.ranks=7..9"], &[]).expect("fine");
        assert_eq!((varied.points(), varied.at(2)), (3, vec!["9".into(), "3".into()]));
        let pinned = space(&file, &[], &["pipeline.ranks=5"]).expect("fine");
        assert_eq!((pinned.points(), pinned.at(0)), (1, vec!["3".into()]));
    }

    #[test]
    fn contradictions_are_refused() {
        let check = |vary: &[&str], set: &[&str], said: &str| {
            let error = space(&[], vary, set).expect_err(said);
            assert!(format!("{error:#}").contains(said), "{error:#}");
        };
        check(&[], &[], "nothing to sweep");
        check(&["pipeline.ranks=1"], &["pipeline.ranks=2"], "both set and varied");
        check(&["pipeline.ranks=1..100000", "pipeline.chunks=1..100000"], &[], "more than");
    }

    #[test]
    fn shards_share_all_points_out() {
        for points in [0, 1, 7, 8, 9] {
            for of in 1..10 {
                let shards: Vec<Shard> = (1..=of).map(|index| Shard { index, of }).collect();
                let own = |shard: &Shard| {
                    let shard = *shard;
                    (0..shard.count(points)).map(move |position| shard.point(position))
                };
                let mut all: Vec<u64> = shards.iter().flat_map(own).collect();
                all.sort_unstable();
                assert_eq!(all, (0..points).collect::<Vec<_>>());
                assert!(all.iter().all(|&p| shards.iter().filter_map(|s| s.position(p)).count() == 1));
            }
        }
        assert!(Shard::read("0/4").is_err() && Shard::read("5/4").is_err() && Shard::read("x").is_err());
    }
}
