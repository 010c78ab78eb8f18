//! Checked sums and products of counts, and the errors of this crate.

/// Why a model's dimensions give no count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// A count does not fit in 64 bits.
    #[error("{what} of this model exceed {max}", max = u64::MAX)]
    TooLarge {
        /// What was counted: `"parameters"`, `"bytes saved for backward"`.
        what: &'static str,
    },
    /// A dimension is zero.
    #[error("`{dimension}` must be at least 1")]
    Zero {
        /// The dimension, as the field of [`crate::Decoder`] is called.
        dimension: &'static str,
    },
    /// Query heads cannot be shared out evenly over the key and value heads.
    #[error("{attention_heads} attention heads cannot share {key_value_heads} key-value heads evenly")]
    UnevenHeads {
        /// Query heads.
        attention_heads: u64,
        /// Key and value heads.
        key_value_heads: u64,
    },
}

/// The product of `factors`, or [`ModelError::TooLarge`] about `what`.
pub(crate) fn product(what: &'static str, factors: &[u64]) -> Result<u64, ModelError> {
    factors
        .iter()
        .try_fold(1_u64, |result, &factor| result.checked_mul(factor))
        .ok_or(ModelError::TooLarge { what })
}

/// The sum of `terms`, or [`ModelError::TooLarge`] about `what`.
pub(crate) fn sum(what: &'static str, terms: impl IntoIterator<Item = u64>) -> Result<u64, ModelError> {
    terms.into_iter().try_fold(0_u64, u64::checked_add).ok_or(ModelError::TooLarge { what })
}
