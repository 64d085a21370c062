//! Decimal numbers digit by digit: for distances that binary numbers are too coarse to tell.

use std::cmp::Ordering;

/// More places than this between the first digits of two numbers and what they differ by is not worked out: it could be
/// as long as an exponent says.
const MOST_PLACES: i64 = 4096;

/// A decimal number that is not negative: `0.d₁d₂d₃… × 10^power`, without zeros at either end; no digits for 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: Vec<u8>,
    power: i64,
}

impl Decimal {
    /// From digits (0 to 9) and the power of ten of a first digit before the point.
    pub(super) fn new(digits: Vec<u8>, power: i64) -> Self {
        let Some(first) = digits.iter().position(|digit| *digit != 0) else {
            return Self {
                digits: vec![],
                power: 0,
            };
        };
        let last = digits.iter().rposition(|digit| *digit != 0);
        let kept = digits.get(first..=last.unwrap_or(first));
        Self {
            digits: kept.unwrap_or_default().to_vec(),
            power: power.saturating_sub(i64::try_from(first).unwrap_or(i64::MAX)),
        }
    }

    /// The power of ten of the last digit.
    fn end(&self) -> i64 {
        let length = i64::try_from(self.digits.len()).unwrap_or(i64::MAX);
        self.power.saturating_sub(length)
    }

    fn digit(&self, place: i64) -> u8 {
        let at = usize::try_from(self.power.saturating_sub(1).saturating_sub(place));
        at.ok()
            .and_then(|at| self.digits.get(at))
            .copied()
            .unwrap_or(0)
    }

    /// |self − other|, or their sum; `None` where that has far more places than either number.
    pub(super) fn apart(&self, other: &Self, sum: bool) -> Option<Self> {
        if self.digits.is_empty() || other.digits.is_empty() {
            let same = if self.digits.is_empty() { other } else { self };
            return Some(same.clone());
        }
        let (low, high) = (
            self.end().min(other.end()),
            self.power.max(other.power).saturating_add(1),
        );
        let written = self.digits.len() + other.digits.len();
        let most = i64::try_from(written).unwrap_or(i64::MAX);
        if high.saturating_sub(low) > most.saturating_add(MOST_PLACES) {
            return None;
        }
        let (large, small) = match self.cmp(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        // From the last place to the first, with what is carried (or, taken away, borrowed).
        let mut digits = Vec::new();
        let mut carry = 0;
        for place in low..high {
            let (a, b) = (i16::from(large.digit(place)), i16::from(small.digit(place)));
            let whole = if sum { a + b + carry } else { a - b + carry };
            carry = whole.div_euclid(10);
            digits.push(u8::try_from(whole.rem_euclid(10)).unwrap_or(0));
        }
        digits.reverse();
        Some(Self::new(digits, high))
    }

    /// self × other, which has few digits.
    pub(super) fn times(&self, other: &Self) -> Self {
        let factor = other
            .digits
            .iter()
            .fold(0u128, |all, digit| all * 10 + u128::from(*digit));
        let mut digits = Vec::new();
        let mut carry = 0u128;
        for digit in self.digits.iter().rev() {
            let whole = u128::from(*digit) * factor + carry;
            digits.push((whole % 10) as u8);
            carry = whole / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        let end = self.end().saturating_add(other.end());
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        Self::new(digits, end.saturating_add(length))
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without zeros at the end the shorter of two beginnings is the smaller.
            (false, false) => (self.power, &self.digits).cmp(&(other.power, &other.digits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `n` × 10^`power`.
    fn scaled(n: u64, power: i64) -> Decimal {
        let digits: Vec<u8> = n.to_string().bytes().map(|b| b - b'0').collect();
        let length = digits.len() as i64;
        Decimal::new(digits, length + power)
    }

    proptest! {
        #[test]
        fn as_whole_numbers_have_it(a in 0u64..1 << 40, b in 0u64..1 << 40, power in -30i64..30) {
            let (x, y) = (scaled(a, power), scaled(b, power));
            prop_assert_eq!(x.apart(&y, false), Some(scaled(a.abs_diff(b), power)));
            prop_assert_eq!(x.apart(&y, true), Some(scaled(a + b, power)));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            let (c, d) = (a % 100_000, b % 100_000);
            prop_assert_eq!(scaled(c, power).times(&scaled(d, -7)), scaled(c * d, power - 7));
        }

        #[test]
        fn places_far_apart_are_aligned(a in 1u64..1000, b in 1u64..1000, gap in 0i64..12) {
            let x = scaled(a, gap);
            let whole = a * 10u64.pow(gap as u32);
            prop_assert_eq!(x.apart(&scaled(b, 0), true), Some(scaled(whole + b, 0)));
            prop_assert_eq!(x.apart(&scaled(b, 0), false), Some(scaled(whole.abs_diff(b), 0)));
        }
    }

    #[test]
    fn what_an_exponent_makes_too_long_is_not_worked_out() {
        let (huge, tiny) = (scaled(1, i64::MAX / 2), scaled(1, i64::MIN / 2));
        assert_eq!(huge.apart(&tiny, false), None);
        assert!(huge > tiny && tiny > scaled(0, 0));
        assert_eq!(huge.apart(&scaled(0, 0), false), Some(huge.clone()));
        assert_eq!(huge.apart(&huge, false), Some(scaled(0, 0)));
    }
}
