//! The number formats of tensors in a GGUF file, and their numbers in f32.
//!
//! Quantised formats hold blocks of 32 or 256 consecutive numbers with scales of their own. The layouts are those of
//! ggml's `block_q4_0` and so on; every multi-byte number is little-endian.

use crate::weights::half_to_f32;

/// Numbers in a super-block of the K formats.
const SUPER: usize = 256;

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// The upper half of a 32-bit float.
    Bf16,
    /// 4 bits around zero, one scale for 32.
    Q4_0,
    /// 4 bits from a minimum up, scale and minimum for 32.
    Q4_1,
    /// 8 bits, one scale for 32.
    Q8_0,
    /// 4 bits, 8 scales and minima of 6 bits for 256.
    Q4K,
    /// 6 bits, 16 scales of 8 bits for 256.
    Q6K,
}

impl Kind {
    /// Formats that can be read.
    pub const ALL: [Self; 8] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q8_0,
        Self::Q4K,
        Self::Q6K,
    ];

    /// The format of that number in a file.
    ///
    /// # Errors
    /// What the format is called, if it is not one of [`Kind::ALL`].
    pub fn numbered(number: u32) -> Result<Self, String> {
        let name = match number {
            0 => return Ok(Self::F32),
            1 => return Ok(Self::F16),
            2 => return Ok(Self::Q4_0),
            3 => return Ok(Self::Q4_1),
            8 => return Ok(Self::Q8_0),
            12 => return Ok(Self::Q4K),
            14 => return Ok(Self::Q6K),
            30 => return Ok(Self::Bf16),
            6 => "Q5_0".into(),
            7 => "Q5_1".into(),
            10 => "Q2_K".into(),
            11 => "Q3_K".into(),
            13 => "Q5_K".into(),
            other => format!("number {other}"),
        };
        let known: Vec<&str> = Self::ALL.iter().map(|k| k.name()).collect();
        Err(format!(
            "number format {name} is not supported, only {}",
            known.join(", ")
        ))
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::Q4_0 => "Q4_0",
            Self::Q4_1 => "Q4_1",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q6K => "Q6_K",
        }
    }

    /// Numbers in a block, and bytes that the block takes.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q4_0 => (32, 2 + 16),
            Self::Q4_1 => (32, 4 + 16),
            Self::Q8_0 => (32, 2 + 32),
            Self::Q4K => (SUPER, 4 + 12 + SUPER / 2),
            Self::Q6K => (SUPER, SUPER / 2 + SUPER / 4 + SUPER / 16 + 2),
        }
    }

    /// The numbers in `bytes`, which are whole blocks; what is left over at the end is not looked at.
    pub fn dequantise(self, bytes: &[u8]) -> Vec<f32> {
        let (numbers, size) = self.block();
        let mut out = Vec::with_capacity(bytes.len() / size * numbers);
        for block in bytes.chunks_exact(size) {
            match self {
                Self::F32 => out.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
                Self::F16 => out.push(half(block, 0)),
                Self::Bf16 => out.push(f32::from_bits(u32::from(word(block, 0)) << 16)),
                Self::Q4_0 => {
                    let scale = half(block, 0);
                    nibbles(&block[2..], |q| (f32::from(q) - 8.0) * scale, &mut out);
                }
                Self::Q4_1 => {
                    let (scale, least) = (half(block, 0), half(block, 2));
                    nibbles(&block[4..], |q| f32::from(q) * scale + least, &mut out);
                }
                Self::Q8_0 => {
                    let scale = half(block, 0);
                    out.extend(block[2..].iter().map(|&q| f32::from(q as i8) * scale));
                }
                Self::Q4K => q4_k(block, &mut out),
                Self::Q6K => q6_k(block, &mut out),
            }
        }
        out
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn half(bytes: &[u8], at: usize) -> f32 {
    half_to_f32(word(bytes, at))
}

/// The lower halves of all bytes, then the upper ones.
fn nibbles(bytes: &[u8], number: impl Fn(u8) -> f32, out: &mut Vec<f32>) {
    out.extend(bytes.iter().map(|b| number(b & 15)));
    out.extend(bytes.iter().map(|b| number(b >> 4)));
}

/// Scale and minimum of 256 numbers, 8 scales and 8 minima of 6 bits, then 4 bits a number in runs of 32.
fn q4_k(block: &[u8], out: &mut Vec<f32>) {
    let (scale, least) = (half(block, 0), half(block, 2));
    let (packed, numbers) = block[4..].split_at(12);
    // Six bits of the first four stand together; of the last four, the upper two bits are above those.
    let part = |i: usize| -> (u8, u8) {
        if i < 4 {
            (packed[i] & 63, packed[i + 4] & 63)
        } else {
            (
                packed[i + 4] & 15 | packed[i - 4] >> 6 << 4,
                packed[i + 4] >> 4 | packed[i] >> 6 << 4,
            )
        }
    };
    for (pair, bytes) in numbers.chunks_exact(32).enumerate() {
        for upper in 0..2 {
            let (s, m) = part(2 * pair + upper);
            let (s, m) = (scale * f32::from(s), least * f32::from(m));
            out.extend(
                bytes
                    .iter()
                    .map(|b| s * f32::from(if upper == 0 { b & 15 } else { b >> 4 }) - m),
            );
        }
    }
}

/// The lower 4 bits of 256 numbers, the upper 2, 16 scales of 8 bits, and the scale of all. Each half of 128 numbers
/// goes in four runs of 32.
fn q6_k(block: &[u8], out: &mut Vec<f32>) {
    let (lower, rest) = block.split_at(SUPER / 2);
    let (upper, rest) = rest.split_at(SUPER / 4);
    let (scales, scale) = rest.split_at(SUPER / 16);
    let scale = half(scale, 0);
    for ((lower, upper), scales) in lower
        .chunks_exact(64)
        .zip(upper.chunks_exact(32))
        .zip(scales.chunks_exact(8))
    {
        for run in 0..4 {
            for i in 0..32 {
                let low = lower[32 * (run % 2) + i] >> (4 * (run / 2)) & 15;
                let high = upper[i] >> (2 * run) & 3;
                let number = f32::from((low | high << 4) as i8 - 32);
                let part = f32::from(scales[2 * run + i / 16] as i8);
                out.push(scale * part * number);
            }
        }
    }
}
