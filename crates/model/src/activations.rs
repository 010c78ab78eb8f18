//! What forward keeps for backward, component by component, and what a message carries.
//!
//! Everything kept is FP32, four bytes an element. [`Saved::NonlinearFp32`] keeps what the nonlinear parts
//! need: norms, attention probabilities, the gated part, and the head's loss probabilities.
//! [`Saved::GemmInputsFp32`] adds the left-hand inputs of the matrix multiplications, which their weight
//! gradients need. Recomputation drops some of it and needs a workspace during backward instead.
//!
//! Not here: when bytes are held (the step's ledger decides), and weights, gradients and optimizer state
//! (see [`Decoder::part_parameters`]).

use crate::arithmetic::{ModelError, product, sum};
use crate::{Decoder, Part};

/// Bytes of an FP32 element.
const FP32: u64 = 4;
/// Bytes of a BF16 element, the form in which activations travel.
const BF16: u64 = 2;

const SAVED: &str = "bytes saved for backward";
const WORKSPACE: &str = "bytes of recompute workspace";
const MESSAGE: &str = "bytes of a message";

/// What forward keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The state of the nonlinear parts.
    NonlinearFp32,
    /// The same, and the inputs of the matrix multiplications.
    GemmInputsFp32,
}

/// What backward rebuilds instead of finding it saved. The two choices are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recompute {
    /// The activated gate of the gated part, from the gate itself.
    pub silu: bool,
    /// Matrix inputs that are one multiplication away from what is saved anyway: the weighted norms and the
    /// gated product. Matters only with [`Saved::GemmInputsFp32`].
    pub products: bool,
}

/// The size of one micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MicroBatch {
    /// Sequences in it.
    pub sequences: u64,
    /// Tokens in each sequence.
    pub tokens: u64,
}

/// A model, the size of its micro-batches, and what it keeps of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activations {
    /// The dimensions.
    pub model: Decoder,
    /// The micro-batch.
    pub micro_batch: MicroBatch,
    /// What forward keeps.
    pub saved: Saved,
    /// What backward rebuilds.
    pub recompute: Recompute,
}

/// One saved object of a layer or of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The normed input of the layer and one reciprocal a row.
    InputNorm,
    /// The normed queries and one reciprocal a head.
    QueryNorm,
    /// The normed keys and one reciprocal a head.
    KeyNorm,
    /// The causal triangle of attention probabilities, every head.
    AttentionProbabilities,
    /// The normed input of the feed-forward part and one reciprocal a row.
    PostAttentionNorm,
    /// The gate and the up projection, and the activated gate unless it is recomputed.
    GatedPart,
    /// The final norm and one reciprocal a row.
    FinalNorm,
    /// The probabilities over the vocabulary.
    LossProbabilities,
    /// Matrix input: the input norm times its weight.
    WeightedInputNorm,
    /// Matrix input: rotated queries.
    Queries,
    /// Matrix input: rotated keys.
    Keys,
    /// Matrix input: values.
    Values,
    /// Matrix input: the output of attention, before its projection.
    AttentionOutput,
    /// Matrix input: the norm after attention times its weight.
    WeightedPostAttentionNorm,
    /// Matrix input: the activated gate times the up projection.
    GatedProduct,
    /// Matrix input: the final norm times its weight.
    WeightedFinalNorm,
}

impl Recompute {
    /// Nothing is rebuilt.
    pub const NONE: Self = Self { silu: false, products: false };
    /// The activated gate is rebuilt.
    pub const SILU: Self = Self { silu: true, products: false };
    /// Weighted norms and gated products are rebuilt.
    pub const PRODUCTS: Self = Self { silu: false, products: true };
    /// Both are rebuilt.
    pub const SILU_AND_PRODUCTS: Self = Self { silu: true, products: true };
}

impl Component {
    /// Whether [`Recompute::products`] rebuilds it.
    pub const fn is_product(self) -> bool {
        matches!(
            self,
            Self::WeightedInputNorm
                | Self::WeightedPostAttentionNorm
                | Self::GatedProduct
                | Self::WeightedFinalNorm
        )
    }

    /// Whether it is kept only as the input of a matrix multiplication.
    pub const fn is_matrix_input(self) -> bool {
        self.is_product() || matches!(self, Self::Queries | Self::Keys | Self::Values | Self::AttentionOutput)
    }
}

impl Activations {
    /// Bytes that `part` keeps of one micro-batch between its forward and its backward.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn saved_bytes(&self, part: Part) -> Result<u64, ModelError> {
        let components = self.components(part)?;
        sum(SAVED, components.into_iter().map(|(_, bytes)| bytes))
    }

    /// The same, told apart: each component that `part` keeps with its bytes, all layers together.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if one of them does not fit in 64 bits.
    pub fn components(&self, part: Part) -> Result<Vec<(Component, u64)>, ModelError> {
        let mut result = Vec::new();
        for (component, elements) in self.elements(part)? {
            let rebuilt = self.recompute.products && component.is_product();
            let wanted = self.saved == Saved::GemmInputsFp32 && !rebuilt;
            if wanted || !component.is_matrix_input() {
                result.push((component, product(SAVED, &[FP32, elements])?));
            }
        }
        Ok(result)
    }

    /// Bytes that backward of `part` needs beside what is saved, for the layer it is working on.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn workspace_bytes(&self, part: Part) -> Result<u64, ModelError> {
        if part.layers == 0 {
            return Ok(0);
        }
        let width = [self.rows(WORKSPACE)?, self.model.intermediate_size];
        // SiLU backward holds the rebuilt activated gate and its gradient, products one rebuilt product.
        let rows_of_silu = if self.recompute.silu { 2 } else { 0 };
        let products = self.recompute.products && self.saved == Saved::GemmInputsFp32;
        let rows_of_products = u64::from(products);
        product(WORKSPACE, &[FP32, rows_of_silu + rows_of_products, width[0], width[1]])
    }

    /// Elements that backward of `part` rebuilds by one multiplication each, per micro-batch.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn rebuilt_products(&self, part: Part) -> Result<u64, ModelError> {
        if !self.recompute.products || self.saved != Saved::GemmInputsFp32 {
            return Ok(0);
        }
        let elements = self.elements(part)?.into_iter();
        let products = elements.filter(|(component, _)| component.is_product());
        sum("rebuilt elements", products.map(|(_, count)| count))
    }

    /// Bytes of an activation message: the residual stream of one micro-batch in BF16.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn activation_message(&self) -> Result<u64, ModelError> {
        let rows = self.rows(MESSAGE)?;
        product(MESSAGE, &[BF16, rows, self.model.hidden_size])
    }

    /// Bytes of a gradient message: the gradient of the residual stream in FP32.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`] if they do not fit in 64 bits.
    pub fn gradient_message(&self) -> Result<u64, ModelError> {
        let rows = self.rows(MESSAGE)?;
        product(MESSAGE, &[FP32, rows, self.model.hidden_size])
    }

    /// Tokens of a micro-batch: the rows of every activation.
    fn rows(&self, what: &'static str) -> Result<u64, ModelError> {
        product(what, &[self.micro_batch.sequences, self.micro_batch.tokens])
    }

    /// Every component of `part`, matrix inputs and rebuilt ones included, with its number of elements.
    fn elements(&self, part: Part) -> Result<Vec<(Component, u64)>, ModelError> {
        use Component as C;
        let Decoder {
            hidden_size: hidden,
            attention_heads: heads,
            key_value_heads: key_heads,
            head_dim,
            intermediate_size: wide,
            ..
        } = self.model;
        let rows = self.rows(SAVED)?;
        let gates = if self.recompute.silu { 2 } else { 3 };
        let mut result = Vec::new();
        let mut keep = |times: u64, component: C, factors: &[u64]| -> Result<(), ModelError> {
            if times > 0 {
                let one = product(SAVED, factors)?;
                result.push((component, product(SAVED, &[times, one])?));
            }
            Ok(())
        };
        let normed = if self.model.query_key_norm { part.layers } else { 0 };
        let (hidden_and_one, head_and_one) = (one_more(hidden)?, one_more(head_dim)?);

        keep(part.layers, C::InputNorm, &[rows, hidden_and_one])?;
        keep(normed, C::QueryNorm, &[rows, heads, head_and_one])?;
        keep(normed, C::KeyNorm, &[rows, key_heads, head_and_one])?;
        let triangle = self.causal_triangle()?;
        keep(part.layers, C::AttentionProbabilities, &[triangle, heads])?;
        keep(part.layers, C::PostAttentionNorm, &[rows, hidden_and_one])?;
        keep(part.layers, C::GatedPart, &[gates, rows, wide])?;
        keep(part.layers, C::WeightedInputNorm, &[rows, hidden])?;
        keep(part.layers, C::Queries, &[rows, heads, head_dim])?;
        keep(part.layers, C::Keys, &[rows, key_heads, head_dim])?;
        keep(part.layers, C::Values, &[rows, key_heads, head_dim])?;
        keep(part.layers, C::AttentionOutput, &[rows, heads, head_dim])?;
        keep(part.layers, C::WeightedPostAttentionNorm, &[rows, hidden])?;
        keep(part.layers, C::GatedProduct, &[rows, wide])?;

        let head = u64::from(part.head);
        keep(head, C::FinalNorm, &[rows, hidden_and_one])?;
        let vocabulary = self.model.vocabulary_size;
        keep(head, C::LossProbabilities, &[rows, vocabulary])?;
        keep(head, C::WeightedFinalNorm, &[rows, hidden])?;
        Ok(result)
    }

    /// Pairs of a token and one it may look at, over all sequences of a micro-batch.
    fn causal_triangle(&self) -> Result<u64, ModelError> {
        let MicroBatch { sequences, tokens } = self.micro_batch;
        let (even, odd) = if tokens.is_multiple_of(2) {
            (tokens / 2, one_more(tokens)?)
        } else {
            (one_more(tokens)? / 2, tokens)
        };
        product(SAVED, &[sequences, even, odd])
    }
}

/// A row and its one reciprocal.
fn one_more(size: u64) -> Result<u64, ModelError> {
    sum(SAVED, [size, 1])
}
