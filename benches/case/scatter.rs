//! How the lengths of the benches' replicas scatter.

use pipestep::step::{Jitter, LinkScatter, Scatter, SideBySide};

/// Every operation and message is 5 % longer or shorter (one standard deviation).
pub(crate) fn jitter(ranks: usize) -> Jitter {
    let scatter = Scatter::Normal { mean: 1.0, deviation: 0.05 };
    let by_rank = vec![scatter.clone(); ranks];
    let link = LinkScatter { boundaries: vec![scatter.clone(); ranks - 1], others: scatter };
    Jitter {
        forward: by_rank.clone(),
        backward: by_rank.clone(),
        input_gradient: by_rank.clone(),
        weight_gradient: by_rank.clone(),
        update: by_rank,
        activation: link.clone(),
        gradient: link,
        runs: SideBySide::LANES as u32,
        seed: 1,
    }
}
