//! Routing records: what a sample brings along so that the update sends its tokens to the same experts.
//!
//! One idea: bytes by tokens, over a link from the engines to the trainer. A record is declared with everything it
//! carries besides the experts' numbers; only the sum is simulated, not what is in it.

use pipestep_engine::{Bytes, Duration, Overflow, Rate};

/// Which experts each token of a sample went to, in every mixture-of-experts layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingRecord {
    /// Layers with experts.
    pub layers: u32,
    /// Experts that a token goes to in each.
    pub top_k: u32,
    /// Bytes of an expert's number.
    pub bytes_per_id: u32,
    /// Further bytes that tell the tokens apart, for each.
    pub identity: Bytes,
    /// Bytes at the head of each record.
    pub header: Bytes,
    /// How fast records go from the engines to the trainer, one after the other.
    pub rate: Rate,
}

impl RoutingRecord {
    /// The experts' numbers of so many tokens.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn ids(&self, tokens: u64) -> Result<Bytes, Overflow> {
        let per_token = Bytes::new(u64::from(self.layers) * u64::from(self.top_k));
        per_token.times(u64::from(self.bytes_per_id))?.times(tokens)
    }

    /// The whole record of a sample with so many tokens (prompt and response): the experts' numbers, what tells
    /// the tokens apart, a bit for each that says whether it is valid, and the header.
    ///
    /// # Errors
    /// [`Overflow`] past 64 bits.
    pub fn size(&self, tokens: u64) -> Result<Bytes, Overflow> {
        let valid = Bytes::new(tokens.div_ceil(8));
        self.ids(tokens)?.plus(self.identity.times(tokens)?)?.plus(valid)?.plus(self.header)
    }

    /// How long so many bytes of records take.
    pub(crate) const fn time(&self, bytes: Bytes) -> Result<Duration, Overflow> {
        self.rate.time_for(bytes)
    }
}
