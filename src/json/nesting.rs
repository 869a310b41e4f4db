//! A stack of open brackets, which replaces recursion when a value is skipped.

/// The open brackets, one bit per level: set for an object, clear for an array.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// The innermost level is the lowest bit of the first word.
    bits: [u64; 4],
    pub(super) depth: u16,
}

impl Nesting {
    /// Must be called at most 255 times more than `pop`, which holds since the depth limit is a
    /// `u8`.
    pub(super) fn push(&mut self, object: bool) {
        let mut carry = u64::from(object);
        for word in &mut self.bits {
            let out = *word >> 63;
            *word = (*word << 1) | carry;
            carry = out;
        }
        self.depth = self.depth.saturating_add(1);
    }

    pub(super) fn pop(&mut self) {
        let mut carry = 0;
        for word in self.bits.iter_mut().rev() {
            let out = *word << 63;
            *word = (*word >> 1) | carry;
            carry = out;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns `Some(true)` if the innermost open bracket is an object's, `Some(false)` if it is an
    /// array's, and `None` if none is open.
    pub(super) fn top(&self) -> Option<bool> {
        let [first, ..] = self.bits;
        (self.depth > 0).then_some(first & 1 == 1)
    }
}

#[cfg(test)]
#[allow(clippy::restriction, clippy::pedantic)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_level() {
        let mut nesting = Nesting::default();
        let object = |level: u16| level % 3 == 0 || level % 7 == 2;
        for level in 0..255 {
            assert_eq!(nesting.depth, level);
            nesting.push(object(level));
        }
        for level in (0..255).rev() {
            assert_eq!(nesting.top(), Some(object(level)));
            nesting.pop();
        }
        assert_eq!(nesting.top(), None);
    }
}
