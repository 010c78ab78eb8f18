//! Floating-point operations of a decoder's matrix products.
//!
//! One formula: a multiply-add is two operations; every token goes through all matrices of every layer, and in
//! attention meets itself and those before it. Norms, activations and the softmax are not counted, as usual for a
//! model's own FLOPs. A backward takes twice its forward.

use crate::arithmetic::{ModelError, product, sum};
use crate::decoder::Decoder;

const OPERATIONS: &str = "floating-point operations";

impl Decoder {
    /// Operations of a forward over `tokens` tokens of one sequence, the first of which has `before` tokens before
    /// it whose keys and values are kept; `logits` of them go through the output projection.
    ///
    /// A prefill is `forward_flops(0, prompt, 1)`, the decoding of its n-th token after that
    /// `forward_flops(prompt + n - 1, 1, 1)`, a forward of a training step `forward_flops(0, length, length)`.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn forward_flops(&self, before: u64, tokens: u64, logits: u64) -> Result<u64, ModelError> {
        let heads = product(OPERATIONS, &[self.attention_heads, self.head_dim])?;
        let key_values = product(OPERATIONS, &[self.key_value_heads, self.head_dim])?;
        let weights = sum(
            OPERATIONS,
            [
                product(OPERATIONS, &[2, self.hidden_size, heads])?,
                product(OPERATIONS, &[2, self.hidden_size, key_values])?,
                product(OPERATIONS, &[3, self.hidden_size, self.intermediate_size])?,
            ],
        )?;
        // Each token meets those before it and itself; scores and values are a multiply-add each.
        let own = product(OPERATIONS, &[tokens, tokens.saturating_add(1)])? / 2;
        let pairs = sum(OPERATIONS, [product(OPERATIONS, &[tokens, before])?, own])?;
        sum(
            OPERATIONS,
            [
                product(OPERATIONS, &[2, self.layers, weights, tokens])?,
                product(OPERATIONS, &[4, self.layers, heads, pairs])?,
                product(OPERATIONS, &[2, self.hidden_size, self.vocabulary_size, logits])?,
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_token_by_token_takes_what_it_takes_at_once() {
        let model = Decoder::preset("qwen3-8b").expect("a preset");
        let at_once = model.forward_flops(0, 100, 100).expect("small");
        let one_by_one = (0..100).map(|before| model.forward_flops(before, 1, 1).expect("small"));
        assert_eq!(one_by_one.sum::<u64>(), at_once);
        assert!(model.forward_flops(u64::MAX / 2, 3, 0).is_err());
    }
}
