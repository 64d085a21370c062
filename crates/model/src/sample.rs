//! One token from one row of logits.
//!
//! Randomness belongs to the dialog: the caller hands in a generator seeded from (seed, problem, rollout, turn),
//! and each token draws one number from it, whatever batch the dialog happens to be in.

use rand::Rng;
use serde::{Deserialize, Serialize};

/// How answers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// 0 takes the likeliest token; 1 leaves the distribution as it is.
    pub temperature: f32,
    /// Keeps the likeliest tokens whose probabilities add up to this; 1 keeps all.
    pub top_p: f32,
    /// Keeps this many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// An answer is cut after this many tokens.
    pub max_new_tokens: usize,
}

impl Sampling {
    /// Checks the numbers.
    ///
    /// # Errors
    /// The field that is out of range, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            let why = format!("is {}; it must be a number from 0", self.temperature);
            return Err(("temperature", why));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            let why = format!("is {}; it must be over 0 and at most 1", self.top_p);
            return Err(("top_p", why));
        }
        if self.max_new_tokens == 0 {
            return Err(("max_new_tokens", "must be at least 1".into()));
        }
        Ok(())
    }
}

/// Draws a token; gives it with its log-probability.
///
/// The log-probability is that of the whole distribution at the given temperature, before top-p and top-k cut it
/// (at temperature 0: of the unscaled one): the number a training pass computes for the same weights.
pub fn sample(logits: &[f32], s: &Sampling, rng: &mut impl Rng) -> (u32, f32) {
    // One draw a token also where it is not needed, so that turning a cut on shifts no later draw.
    let draw: f64 = rng.random();
    let inverse = if s.temperature > 0.0 {
        1.0 / s.temperature
    } else {
        1.0
    };
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = logits
        .iter()
        .map(|&x| f64::from((x - max) * inverse).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let token = if s.temperature == 0.0 {
        argmax(logits)
    } else if s.top_p >= 1.0 && s.top_k == 0 {
        pick(weights.iter().copied().enumerate(), draw * total)
    } else {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        if s.top_k > 0 {
            order.truncate(s.top_k);
        }
        let kept: f64 = order.iter().map(|&i| weights[i]).sum();
        let mut sum = 0.0;
        let mut n = 0;
        for &i in &order {
            sum += weights[i];
            n += 1;
            if sum >= kept * f64::from(s.top_p) {
                break;
            }
        }
        pick(order[..n].iter().map(|&i| (i, weights[i])), draw * sum)
    };
    let logprob = f64::from((logits[token] - max) * inverse) - total.ln();
    (token as u32, logprob as f32)
}

fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}

/// The entry in which `target` falls when the weights are laid end to end.
fn pick(weights: impl Iterator<Item = (usize, f64)>, target: f64) -> usize {
    let mut sum = 0.0;
    let mut last = 0;
    for (i, w) in weights {
        if w > 0.0 {
            sum += w;
            last = i;
            if sum > target {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const PLAIN: Sampling = Sampling {
        temperature: 1.0,
        top_p: 1.0,
        top_k: 0,
        max_new_tokens: 1,
    };

    fn frequencies(logits: &[f32], s: &Sampling) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut count = vec![0.0; logits.len()];
        for _ in 0..20_000 {
            count[sample(logits, s, &mut rng).0 as usize] += 1.0 / 20_000.0;
        }
        count
    }

    #[test]
    fn frequencies_follow_the_distribution() {
        // softmax(ln 1, ln 2, ln 5) = 1/8, 2/8, 5/8
        let logits = [0.0, 2f32.ln(), 5f32.ln()];
        let f = frequencies(&logits, &PLAIN);
        for (got, want) in f.iter().zip([0.125, 0.25, 0.625]) {
            assert!((got - want).abs() < 0.015, "{f:?}");
        }
        // Temperature 0.5 squares the weights: 1, 4, 25 over 30.
        let f = frequencies(
            &logits,
            &Sampling {
                temperature: 0.5,
                ..PLAIN
            },
        );
        for (got, want) in f.iter().zip([1.0 / 30.0, 4.0 / 30.0, 25.0 / 30.0]) {
            assert!((got - want).abs() < 0.015, "{f:?}");
        }
    }

    #[test]
    fn cuts_keep_the_likeliest() {
        let logits = [0.0, 2f32.ln(), 5f32.ln()];
        let f = frequencies(&logits, &Sampling { top_k: 2, ..PLAIN });
        assert_eq!(f[0], 0.0);
        assert!((f[1] - 2.0 / 7.0).abs() < 0.015);
        // 5/8 alone reaches 0.6; 0.7 needs two.
        let cut = |top_p| frequencies(&logits, &Sampling { top_p, ..PLAIN });
        assert_eq!(cut(0.6)[..2], [0.0, 0.0]);
        assert_eq!(cut(0.7)[0], 0.0);
        assert!(cut(0.7)[1] > 0.2);
    }

    #[test]
    fn log_probability_is_of_the_whole_distribution() {
        let logits = [0.0, 2f32.ln(), 5f32.ln()];
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (token, lp) = sample(&logits, &Sampling { top_k: 1, ..PLAIN }, &mut rng);
        assert_eq!(token, 2);
        assert!((lp - (5.0f32 / 8.0).ln()).abs() < 1e-6);
        let (token, lp) = sample(
            &logits,
            &Sampling {
                temperature: 0.0,
                ..PLAIN
            },
            &mut rng,
        );
        assert_eq!(token, 2);
        assert!((lp - (5.0f32 / 8.0).ln()).abs() < 1e-6);
    }

    #[test]
    fn impossible_tokens_are_never_drawn() {
        let f = frequencies(&[f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY], &PLAIN);
        assert_eq!((f[0], f[2]), (0.0, 0.0));
        assert!(f[1] > 0.999);
    }
}
