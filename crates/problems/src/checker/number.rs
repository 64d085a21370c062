//! Decimal numbers as programs print them, and when two of them are near enough.

/// A token that is a decimal number: an optional sign, digits with at most one point, an optional exponent.
pub(super) struct Number<'a> {
    negative: bool,
    /// The digits before the point, then those after it.
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
    /// Whether it is written without point and exponent.
    plain: bool,
    /// The nearest binary number; infinite where it is too large for one.
    value: f64,
}

impl<'a> Number<'a> {
    /// Reads `-12`, `+.5`, `3.`, `1e-9` … and nothing else. An exponent of more than 18 digits is not read as one.
    pub(super) fn parse(token: &'a [u8]) -> Option<Self> {
        let (negative, unsigned) = match token.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, token),
        };
        let (mantissa, exponent) =
            match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
                Some(at) => (unsigned.get(..at)?, read_exponent(unsigned.get(at + 1..)?)?),
                None => (unsigned, 0),
            };
        let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
            Some(at) => (mantissa.get(..at)?, mantissa.get(at + 1..)?),
            None => (mantissa, &[][..]),
        };
        if whole.len() + fraction.len() == 0
            || !whole.iter().chain(fraction).all(u8::is_ascii_digit)
        {
            return None;
        }
        let plain = whole.len() == unsigned.len();
        let value = std::str::from_utf8(token).ok()?.parse().ok()?;
        Some(Self {
            negative,
            whole,
            fraction,
            exponent,
            plain,
            value,
        })
    }

    /// Whether it is written as a whole number: digits, and perhaps a sign.
    pub(super) fn is_whole(&self) -> bool {
        self.plain
    }

    /// Whether `got` is within `abs`, or within `rel` × |self|, of this number.
    ///
    /// Two binary numbers next to each other stand for many decimals. Where the tolerance is coarser than that, the
    /// distance of the binary numbers decides, and a distance that is the tolerance but for rounding counts as within;
    /// otherwise (tolerance 0, integers beyond 2^53, numbers too large) only the same decimal value is near.
    pub(super) fn is_near(&self, got: &Self, abs: f64, rel: f64) -> bool {
        let tolerance = abs.max(rel * self.value.abs());
        let spacing = self.value.abs().max(got.value.abs()) * f64::EPSILON;
        if self.value.is_finite()
            && got.value.is_finite()
            && tolerance.is_finite()
            && tolerance > 2.0 * spacing
        {
            (self.value - got.value).abs() <= tolerance + spacing
        } else {
            self.decimal() == got.decimal()
        }
    }

    /// Sign, digits without the zeros at either end, and the power of ten of the first digit: equal exactly when the
    /// numbers are.
    fn decimal(&self) -> (bool, Vec<u8>, i64) {
        let digits: Vec<u8> = self.whole.iter().chain(self.fraction).copied().collect();
        let Some(first) = digits.iter().position(|&digit| digit != b'0') else {
            return (false, Vec::new(), 0);
        };
        let last = digits
            .iter()
            .rposition(|&digit| digit != b'0')
            .unwrap_or(first);
        let place = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let power = self
            .exponent
            .saturating_add(place(self.whole.len()))
            .saturating_sub(place(first));
        (
            self.negative,
            digits.get(first..=last).unwrap_or_default().to_vec(),
            power,
        )
    }
}

fn read_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits
        .iter()
        .fold(0i64, |sum, &digit| sum * 10 + i64::from(digit - b'0'));
    Some(if negative { -size } else { size })
}
