//! Whether a number is in the range of an `f64`, without computing it.

/// How large a decimal number is, as far as it takes to compare it with the largest `f64`.
#[derive(Debug, Default)]
pub(super) struct Magnitude {
    /// The first 17 digits from the first that is not zero.
    leading: u64,
    /// How many digits that is.
    count: u8,
    /// The decimal exponent of the first of them; meaningless while there is none.
    exponent: i64,
    /// Zeros after the point, before the first digit that is not zero.
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

    /// The largest `f64` is 1.7976931348623157e308.
    pub(super) fn is_in_range(&self) -> bool {
        if self.count == 0 || self.exponent < 308 {
            return true;
        }
        // 17 digits do not overflow.
        let leading = (self.count..17).fold(self.leading, |leading, _| leading.wrapping_mul(10));
        self.exponent == 308 && leading <= 17_976_931_348_623_157
    }
}
