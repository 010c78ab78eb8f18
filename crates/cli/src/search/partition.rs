//! Layers of unequal cost over stages: contiguous parts whose largest is as small as can be, exactly.
//!
//! Several splits usually share the smallest maximum. They differ in memory and in how a pipeline fills, so the
//! search tries the two extremes (as many layers as possible early, and late) and the evenest.

use pipestep_scenario::LayerCosts;

/// Splits with the smallest largest stage, each stage with at least one layer; none if there are too few layers.
pub(crate) fn balanced(costs: &LayerCosts, stages: usize) -> Vec<Vec<u64>> {
    let parts = Parts::new(costs, stages);
    if stages == 0 || stages > costs.layers.len() {
        return Vec::new();
    }
    let largest = parts.smallest_maximum();
    let mut splits: Vec<Vec<u64>> = Vec::new();
    for split in [parts.evenest(largest), parts.early(largest), parts.late(largest)] {
        if !splits.contains(&split) {
            splits.push(split);
        }
    }
    splits
}

/// Sums over layers.
struct Parts {
    /// Of the layers before each, and of all.
    before: Vec<u64>,
    embedding: u64,
    head: u64,
    stages: usize,
}

impl Parts {
    fn new(costs: &LayerCosts, stages: usize) -> Self {
        let sums = costs.layers.iter().scan(0_u64, |sum, &cost| {
            *sum = sum.saturating_add(cost);
            Some(*sum)
        });
        let before = std::iter::once(0).chain(sums).collect();
        Self { before, embedding: costs.embedding, head: costs.head, stages }
    }

    fn layers(&self) -> usize {
        self.before.len() - 1
    }

    /// What a stage with the layers `from..to` costs.
    fn cost(&self, stage: usize, from: usize, to: usize) -> u64 {
        let first = if stage == 0 { self.embedding } else { 0 };
        let last = if stage + 1 == self.stages { self.head } else { 0 };
        (self.before[to] - self.before[from]).saturating_add(first).saturating_add(last)
    }

    /// The smallest value that the largest stage can have.
    fn smallest_maximum(&self) -> u64 {
        self.best(u64::max, 0).map_or(u64::MAX, |(largest, _)| largest)
    }

    /// Of the splits without a stage above `largest`, the one with the smallest sum of squares.
    fn evenest(&self, largest: u64) -> Vec<u64> {
        let add = |sum: u128, cost: u64| {
            if cost > largest {
                u128::MAX
            } else {
                sum.saturating_add(u128::from(cost).saturating_mul(cost.into()))
            }
        };
        self.best(add, 0).map(|(_, split)| split).unwrap_or_default()
    }

    /// The best split stage by stage (Bellman): `value[k]` is that of the first stages over the first k layers.
    fn best<V: Copy + Ord>(&self, add: impl Fn(V, u64) -> V, zero: V) -> Option<(V, Vec<u64>)> {
        let layers = self.layers();
        let mut value: Vec<Option<V>> = vec![None; layers + 1];
        value[0] = Some(zero);
        let mut chosen: Vec<Vec<usize>> = Vec::with_capacity(self.stages);
        for stage in 0..self.stages {
            let left = self.stages - stage - 1;
            let mut next = vec![None; layers + 1];
            let mut from_of = vec![0; layers + 1];
            for to in stage + 1..=layers - left {
                let ways = (stage..to)
                    .filter_map(|from| Some((add(value[from]?, self.cost(stage, from, to)), from)));
                if let Some((best, from)) = ways.min() {
                    (next[to], from_of[to]) = (Some(best), from);
                }
            }
            value = next;
            chosen.push(from_of);
        }
        let total = value[layers]?;
        let mut split = vec![0; self.stages];
        let mut to = layers;
        for stage in (0..self.stages).rev() {
            let from = chosen[stage][to];
            split[stage] = (to - from) as u64;
            to = from;
        }
        Some((total, split))
    }

    /// Each stage as full as `largest` allows, from the first on.
    fn early(&self, largest: u64) -> Vec<u64> {
        let mut from = 0;
        let stages = 0..self.stages;
        let split = stages.map(|stage| {
            let left = self.stages - stage - 1;
            let most = self.layers() - left;
            let fits = |to: &usize| self.cost(stage, from, *to) <= largest;
            let to =
                if left == 0 { most } else { (from + 1..=most).take_while(fits).last().unwrap_or(from + 1) };
            let count = to - from;
            from = to;
            count as u64
        });
        split.collect()
    }

    /// Each stage as full as `largest` allows, from the last on.
    fn late(&self, largest: u64) -> Vec<u64> {
        let mut to = self.layers();
        let mut split = vec![0; self.stages];
        for stage in (0..self.stages).rev() {
            let fits = |from: &usize| self.cost(stage, *from, to) <= largest;
            let from =
                if stage == 0 { 0 } else { (stage..to).rev().take_while(fits).last().unwrap_or(to - 1) };
            split[stage] = (to - from) as u64;
            to = from;
        }
        split
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(layers: &[u64], embedding: u64, head: u64) -> LayerCosts {
        LayerCosts { layers: layers.to_vec(), embedding, head }
    }

    /// The largest stage of a split.
    fn largest(costs: &LayerCosts, split: &[u64]) -> u64 {
        let mut from = 0;
        let stages = split.iter().enumerate().map(|(stage, &count)| {
            let to = from + count as usize;
            let sum: u64 = costs.layers[from..to].iter().sum();
            from = to;
            let ends = [(stage == 0, costs.embedding), (stage + 1 == split.len(), costs.head)];
            sum + ends.iter().filter(|(there, _)| *there).map(|(_, cost)| cost).sum::<u64>()
        });
        stages.max().unwrap_or(0)
    }

    /// Every split with at least one layer a stage.
    fn all(layers: u64, stages: usize) -> Vec<Vec<u64>> {
        if stages == 1 {
            return vec![vec![layers]];
        }
        let firsts = 1..=layers.saturating_sub(stages as u64 - 1);
        let rests =
            |first| all(layers - first, stages - 1).into_iter().map(move |rest| [vec![first], rest].concat());
        firsts.flat_map(rests).collect()
    }

    #[test]
    fn a_heavy_head_takes_layers_from_the_last_stage() {
        assert_eq!(balanced(&costs(&[1; 36], 0, 4), 4), [[10, 10, 10, 6]]);
        // Room for one more layer: it may lie at either end.
        assert_eq!(balanced(&costs(&[1; 40], 2, 5), 4), [[9, 12, 12, 7], [10, 12, 12, 6]]);
    }

    #[test]
    fn no_split_has_a_smaller_largest_stage() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for _ in 0..500 {
            let layers: Vec<u64> = (0..=next(9)).map(|_| next(20)).collect();
            let costs = costs(&layers, next(30), next(30));
            let stages = 1 + next(layers.len() as u64) as usize;
            let best = all(layers.len() as u64, stages).iter().map(|split| largest(&costs, split)).min();
            let splits = balanced(&costs, stages);
            assert!(!splits.is_empty());
            for split in splits {
                assert_eq!(split.iter().sum::<u64>(), layers.len() as u64);
                assert!(split.iter().all(|&count| count > 0));
                assert_eq!(Some(largest(&costs, &split)), best, "{costs:?} over {stages}: {split:?}");
            }
        }
    }

    #[test]
    fn too_few_layers_have_no_split() {
        assert!(balanced(&costs(&[1, 1], 0, 0), 3).is_empty());
        assert!(balanced(&costs(&[1, 1], 0, 0), 0).is_empty());
    }
}
