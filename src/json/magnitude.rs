//! Checks whether a number is in the range of `f64` without computing its value.

/// The size of a decimal number, precise enough for a comparison with the largest `f64`.
#[derive(Debug, Default)]
pub(super) struct Magnitude {
    /// The first 17 significant digits.
    leading: u64,
    /// How many digits `leading` has.
    count: u8,
    /// The decimal exponent of the first significant digit. Meaningless while there is none.
    exponent: i64,
    /// The number of digits after the decimal point, up to and including the first significant one.
    zeros: i64,
}

impl Magnitude {
    fn push(&mut self, digit: u8) {
        if self.count < 17 {
            self.leading = self.leading.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.count = self.count.wrapping_add(1);
        }
    }

    pub(super) fn whole(&mut self, digit: u8) {
        if self.count > 0 {
            self.exponent = self.exponent.saturating_add(1);
        }
        self.push(digit);
    }

    pub(super) fn fraction(&mut self, digit: u8) {
        if self.count == 0 {
            self.zeros = self.zeros.saturating_add(1);
            if digit == 0 {
                return;
            }
            self.exponent = self.zeros.saturating_neg();
        }
        self.push(digit);
    }

    pub(super) fn scale(&mut self, exponent: i64) {
        self.exponent = self.exponent.saturating_add(exponent);
    }

    /// Returns `true` if the number's first 17 digits and exponent are at most those of the largest
    /// `f64`, 1.7976931348623157e308.
    pub(super) fn is_in_range(&self) -> bool {
        if self.count == 0 || self.exponent < 308 {
            return true;
        }
        // 17 digits fit in 64 bits.
        let leading = (self.count..17).fold(self.leading, |leading, _| leading.wrapping_mul(10));
        self.exponent == 308 && leading <= 17_976_931_348_623_157
    }
}
