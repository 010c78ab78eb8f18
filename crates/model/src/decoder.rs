//! A dense decoder by its dimensions, and its parameters.
//!
//! The architecture is the one most open models share: root-mean-square norms, grouped-query attention with
//! rotary positions, a gated (`SwiGLU`) feed-forward part, no biases. Mixtures of experts are not here.

use crate::arithmetic::{ModelError, product, sum};

/// Bytes of one weight in BF16.
pub const WEIGHT_BYTES: u64 = 2;
/// Bytes of one gradient, summed over the micro-batches in FP32.
pub const GRADIENT_BYTES: u64 = 4;
/// Bytes of optimizer state of one parameter: the FP32 master weight and Adam's two FP32 moments.
pub const OPTIMIZER_BYTES: u64 = 12;

const PARAMETERS: &str = "parameters";

/// The dimensions of a dense decoder, named as model cards name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoder {
    /// Decoder layers.
    pub layers: u64,
    /// Width of the residual stream.
    pub hidden_size: u64,
    /// Query heads.
    pub attention_heads: u64,
    /// Key and value heads; a divisor of `attention_heads`.
    pub key_value_heads: u64,
    /// Width of one head.
    pub head_dim: u64,
    /// Width of the gated feed-forward part.
    pub intermediate_size: u64,
    /// Rows of the embedding.
    pub vocabulary_size: u64,
    /// Whether the output projection is the embedding itself.
    pub tied_embeddings: bool,
    /// Whether queries and keys are normed head by head, as Qwen3 does.
    pub query_key_norm: bool,
}

/// What one pipeline stage holds of a decoder. Its layers are all alike, so their number is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Decoder layers.
    pub layers: u64,
    /// Whether it holds the embedding: the first stage does.
    pub embedding: bool,
    /// Whether it holds the final norm, the output projection and the loss: the last stage does.
    pub head: bool,
}

impl Part {
    /// `count` layers and neither end of the model.
    pub const fn layers(count: u64) -> Self {
        Self { layers: count, embedding: false, head: false }
    }
}

impl Decoder {
    /// Checks that the dimensions describe a decoder.
    ///
    /// # Errors
    /// [`ModelError::Zero`] names the first dimension that is zero, [`ModelError::UnevenHeads`] heads that
    /// cannot be grouped.
    pub fn check(&self) -> Result<(), ModelError> {
        let dimensions = [
            ("layers", self.layers),
            ("hidden_size", self.hidden_size),
            ("attention_heads", self.attention_heads),
            ("key_value_heads", self.key_value_heads),
            ("head_dim", self.head_dim),
            ("intermediate_size", self.intermediate_size),
            ("vocabulary_size", self.vocabulary_size),
        ];
        if let Some((dimension, _)) = dimensions.into_iter().find(|&(_, size)| size == 0) {
            return Err(ModelError::Zero { dimension });
        }
        if !self.attention_heads.is_multiple_of(self.key_value_heads) {
            return Err(ModelError::UnevenHeads {
                attention_heads: self.attention_heads,
                key_value_heads: self.key_value_heads,
            });
        }
        Ok(())
    }

    /// All of the model in one part.
    pub const fn whole(&self) -> Part {
        Part { layers: self.layers, embedding: true, head: true }
    }

    /// Parameters of the whole model.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn parameters(&self) -> Result<u64, ModelError> {
        self.part_parameters(self.whole())
    }

    /// Parameters that `part` holds. A tied embedding is held by both ends of the model when they are apart,
    /// and once when one part has both.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn part_parameters(&self, part: Part) -> Result<u64, ModelError> {
        let table = product(PARAMETERS, &[self.vocabulary_size, self.hidden_size])?;
        let shared = self.tied_embeddings && part.embedding && part.head;
        let layers = match part.layers {
            0 => 0,
            count => product(PARAMETERS, &[count, self.layer_parameters()?])?,
        };
        let embedding = if part.embedding { table } else { 0 };
        let projection = if part.head && !shared { table } else { 0 };
        let final_norm = if part.head { self.hidden_size } else { 0 };
        sum(PARAMETERS, [layers, embedding, projection, final_norm])
    }

    /// Parameters of one layer: query, key, value and output projections, the three matrices of the gated
    /// feed-forward part, and the norms.
    fn layer_parameters(&self) -> Result<u64, ModelError> {
        let hidden = self.hidden_size;
        let head_norms = if self.query_key_norm { product(PARAMETERS, &[2, self.head_dim])? } else { 0 };
        sum(
            PARAMETERS,
            [
                product(PARAMETERS, &[2, hidden, self.attention_heads, self.head_dim])?,
                product(PARAMETERS, &[2, hidden, self.key_value_heads, self.head_dim])?,
                product(PARAMETERS, &[3, hidden, self.intermediate_size])?,
                product(PARAMETERS, &[2, hidden])?,
                head_norms,
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qwen3_8b() -> Decoder {
        Decoder::preset("qwen3-8b").expect("a preset")
    }

    #[test]
    fn parts_of_a_model_add_up_to_the_whole() {
        let model = qwen3_8b();
        let first = Part { layers: 9, embedding: true, head: false };
        let last = Part { layers: 9, embedding: false, head: true };
        let parts = [first, Part::layers(9), Part::layers(9), last];
        let total: u64 = parts.map(|part| model.part_parameters(part).expect("small")).iter().sum();
        assert_eq!(total, model.parameters().expect("small"));
    }

    #[test]
    fn a_tied_embedding_is_held_twice_only_when_the_ends_are_apart() {
        let model = Decoder { tied_embeddings: true, ..qwen3_8b() };
        let table = 151_936 * 4_096;
        assert_eq!(model.parameters().expect("small"), 8_190_735_360 - table);
        let ends = [
            Part { layers: 0, embedding: true, head: false },
            Part { layers: 0, embedding: false, head: true },
        ];
        let apart: u64 = ends.map(|part| model.part_parameters(part).expect("small")).iter().sum();
        assert_eq!(apart, 2 * table + 4_096);
    }

    #[test]
    fn dimensions_that_make_no_decoder_are_named() {
        let zero = Decoder { head_dim: 0, ..qwen3_8b() };
        assert_eq!(zero.check(), Err(ModelError::Zero { dimension: "head_dim" }));
        let uneven = Decoder { key_value_heads: 5, ..qwen3_8b() };
        assert_eq!(uneven.check(), Err(ModelError::UnevenHeads { attention_heads: 32, key_value_heads: 5 }));
    }

    #[test]
    fn absurd_dimensions_are_an_error_not_a_wrap() {
        let huge = Decoder { hidden_size: u64::MAX / 2, ..qwen3_8b() };
        assert_eq!(huge.parameters(), Err(ModelError::TooLarge { what: PARAMETERS }));
    }
}
