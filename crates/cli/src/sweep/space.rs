//! The space of a sweep: the cross product of its keys' values, numbered with the last key fastest.

use anyhow::{Context, Result, bail};
use pipestep_scenario::{Axis, Override};

use super::range::values;

/// More points than this are refused; at a thousand a second they would take months.
const MOST_POINTS: u64 = 1 << 32;

/// The keys that are swept.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    axes: Vec<SweptKey>,
    points: u64,
}

/// One key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SweptKey {
    /// Dotted.
    pub(crate) key: String,
    /// As they were written.
    pub(crate) values: Vec<String>,
    /// What errors call the place they come from.
    pub(crate) origin: &'static str,
}

impl Space {
    /// The keys of `[sweep]` and of `--vary`. A key of both takes the values of `--vary`; one of `[sweep]` that
    /// `--set` names keeps that one value.
    ///
    /// # Errors
    /// A `--vary` that cannot be read; no keys at all; too many points.
    pub(crate) fn new(written: &[Axis], vary: &[String], set: &[String]) -> Result<Self> {
        let is_set = |key: &str| set.iter().any(|set| key_of(set) == Some(key));
        let written = written.iter().filter(|axis| !is_set(&axis.key));
        let mut axes: Vec<SweptKey> = written
            .map(|axis| SweptKey { key: axis.key.clone(), values: axis.values.clone(), origin: "[sweep]" })
            .collect();
        for text in vary {
            let varied = read_vary(text).with_context(|| format!("`--vary {text}`"))?;
            if is_set(&varied.key) {
                bail!("`{}` is both set and varied: leave out one of the two", varied.key);
            }
            match axes.iter_mut().find(|axis| axis.key == varied.key) {
                Some(axis) if axis.origin == varied.origin => bail!("`{}` is varied twice", varied.key),
                Some(axis) => *axis = varied,
                None => axes.push(varied),
            }
        }
        if axes.is_empty() {
            bail!(
                "nothing to sweep: the scenario has no `[sweep]`; write `--vary pipeline.micro_batches=1..64`"
            );
        }
        let product = axes.iter().try_fold(1_u64, |all, axis| all.checked_mul(axis.values.len() as u64));
        let points = product.filter(|&points| points <= MOST_POINTS);
        let points = points.with_context(|| format!("the sweep has more than {MOST_POINTS} points"))?;
        Ok(Self { axes, points })
    }

    /// How many points there are.
    pub(crate) const fn points(&self) -> u64 {
        self.points
    }

    /// The keys.
    pub(crate) fn axes(&self) -> &[SweptKey] {
        &self.axes
    }

    /// The values of a point, key by key.
    pub(crate) fn at(&self, point: u64) -> Vec<&str> {
        let sizes: Vec<u64> = self.axes.iter().map(|axis| axis.values.len() as u64).collect();
        let places = places(&sizes, point);
        self.axes.iter().zip(places).map(|(axis, place)| axis.values[place as usize].as_str()).collect()
    }

    /// The overrides that make a scenario that of a point.
    pub(crate) fn overrides(&self, point: u64) -> impl Iterator<Item = Override> {
        let values = self.axes.iter().zip(self.at(point));
        values.map(|(axis, value)| Override::from(format!("{}={value}", axis.key), axis.origin))
    }
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

fn read_vary(text: &str) -> Result<SweptKey> {
    let (key, list) = text.split_once('=').context("expected `KEY=VALUE,VALUE,...`")?;
    Ok(SweptKey { key: key.trim().to_owned(), values: values(list)?, origin: "--vary" })
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

    fn axis(key: &str, values: &[&str]) -> Axis {
        Axis { key: key.to_owned(), values: values.iter().map(ToString::to_string).collect() }
    }

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_last_key_changes_fastest() {
        let space = Space::new(&[axis("a.x", &["1", "2"])], &words(&["b.y=u,v,w"]), &[]).expect("two keys");
        let points: Vec<String> = (0..space.points()).map(|point| space.at(point).join("")).collect();
        assert_eq!(points, ["1u", "1v", "1w", "2u", "2v", "2w"]);
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = [axis("a.x", &["1", "2"]), axis("a.y", &["3"])];
        let varied = Space::new(&file, &words(&["a.x=7..9"]), &[]).expect("fine");
        assert_eq!((varied.points(), varied.at(2)), (3, vec!["9", "3"]));
        let pinned = Space::new(&file, &[], &words(&["a.x=5"])).expect("fine");
        assert_eq!((pinned.points(), pinned.at(0)), (1, vec!["3"]));
    }

    #[test]
    fn contradictions_are_refused() {
        let check = |vary: &[&str], set: &[&str], said: &str| {
            let error = Space::new(&[], &words(vary), &words(set)).expect_err(said);
            assert!(format!("{error:#}").contains(said), "{error:#}");
        };
        check(&[], &[], "nothing to sweep");
        check(&["a=1", "a=2"], &[], "varied twice");
        check(&["a=1"], &["a=2"], "both set and varied");
        check(&["a"], &[], "expected `KEY=VALUE");
        check(&["a=1..1000000", "b=1..1000000"], &[], "more than");
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
