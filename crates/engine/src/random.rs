//! Named random streams from one seed.
//!
//! A draw names its stream (a purpose and an index), so adding a draw in one place moves none elsewhere, and
//! results do not depend on the number of threads or the order in which replicas run.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

/// All the streams of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of one purpose (`"failures"`, `"jitter"`) and index (a run, a rank, a device).
    ///
    /// Two different names or indices give independent streams; the same ones always give the same stream.
    pub fn stream(self, purpose: &str, index: u64) -> ChaCha12Rng {
        let mut seed = [0_u8; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&fnv1a(purpose).to_le_bytes());
        seed[16..24].copy_from_slice(&index.to_le_bytes());
        ChaCha12Rng::from_seed(seed)
    }
}

/// The 64-bit FNV-1a hash: stable across machines and releases, which the standard hasher is not.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_by_seed_purpose_and_index_and_by_nothing_else() {
        let draw = |seed, purpose, index| Streams::new(seed).stream(purpose, index).next_u64();
        let first = draw(1, "failures", 0);
        assert_eq!(first, draw(1, "failures", 0));
        for other in [draw(2, "failures", 0), draw(1, "jitter", 0), draw(1, "failures", 1)] {
            assert_ne!(first, other);
        }
    }
}
