//! A histogram of whole numbers over any range: exact below 16, then eight bins to each doubling.

/// How often values of about each size occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
}

/// Bins of one doubling, as a power of two.
const BITS: u32 = 3;

impl Histogram {
    /// Counts one value.
    pub(crate) fn add(&mut self, value: u64) {
        let bin = bin_of(value);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
    }

    /// The bins that are not empty: least value, greatest value, how often.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let counted = self.counts.iter().copied().enumerate();
        counted
            .filter(|&(_, count)| count > 0)
            .map(|(bin, count)| (least_of(bin), least_of(bin + 1).wrapping_sub(1), count))
    }

    /// How many values were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

fn bin_of(value: u64) -> usize {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    let mantissa = (value >> exponent) as usize;
    ((exponent as usize) << BITS) + mantissa
}

/// The least value of a bin; past the last bin it wraps to 0.
fn least_of(bin: usize) -> u64 {
    let exponent = ((bin >> BITS) as u32).saturating_sub(1);
    let mantissa = (bin - ((exponent as usize) << BITS)) as u128;
    (mantissa << exponent) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin_and_bins_touch() {
        let values = (0..5_000).chain((12..63).map(|shift| (1 << shift) + 5)).chain([u64::MAX, u64::MAX / 2]);
        for value in values {
            let mut histogram = Histogram::default();
            histogram.add(value);
            let bins: Vec<_> = histogram.bins().collect();
            assert_eq!(bins.len(), 1);
            let (low, high, count) = bins[0];
            assert!(low <= value && value <= high && count == 1, "{value}: {bins:?}");
            assert!(high - low <= value / 8, "{value}: {bins:?}");
        }
        for bin in 1..400 {
            assert!(least_of(bin) > least_of(bin - 1), "bin {bin}");
        }
    }
}
