//! Decimal numbers as a mantissa and a power of ten, never as a float.

/// `mantissa / 10^scale`.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub mantissa: u128,
    pub scale: u32,
}

impl Decimal {
    /// Digits with at most one point among or around them; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        let digits = whole.len() + part.len();
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if text.is_empty() || text == "." || !all_digits(whole) || !all_digits(part) {
            return None;
        }
        // Past 38 digits the mantissa stays at the largest number: what it is used for then is too large, or
        // not whole.
        let mantissa = match digits {
            0 => 0,
            _ => format!("{whole}{part}").parse().unwrap_or(u128::MAX),
        };
        Some(Self { mantissa, scale: part.len() as u32 })
    }

    /// The same with an exponent, as floats are printed.
    pub(super) fn parse_scientific(text: &str) -> Option<Self> {
        let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
            return Self::parse(text);
        };
        let number = Self::parse(mantissa)?;
        let exponent: i32 = exponent.parse().ok()?;
        let scale = i64::from(number.scale) - i64::from(exponent);
        match u32::try_from(scale) {
            Ok(scale) => Some(Self { scale, ..number }),
            Err(_) => Some(Self {
                mantissa: number.mantissa.checked_mul(10_u128.checked_pow(u32::try_from(-scale).ok()?)?)?,
                scale: 0,
            }),
        }
    }

    /// The mantissa with so many decimals; `None` if it has more, or past 128 bits.
    pub(crate) fn at_scale(self, scale: u32) -> Option<u128> {
        let power = 10_u128.checked_pow(scale.checked_sub(self.scale)?)?;
        self.mantissa.checked_mul(power)
    }

    /// The product with a whole number, if it is whole. A whole product that is larger than 128 bits is given
    /// as the largest number.
    pub(super) fn times(self, factor: u64) -> Option<u128> {
        if self.scale == 0 {
            return Some(self.mantissa.saturating_mul(u128::from(factor)));
        }
        let product = self.mantissa.checked_mul(u128::from(factor))?;
        let divisor = 10_u128.checked_pow(self.scale)?;
        (product % divisor == 0).then_some(product / divisor)
    }

    /// As a fraction of 64-bit numbers, if it fits.
    pub(super) fn fraction(self) -> Option<(u64, u64)> {
        let denominator = 10_u64.checked_pow(self.scale)?;
        Some((u64::try_from(self.mantissa).ok()?, denominator))
    }
}
