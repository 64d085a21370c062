//! Returns and advantages of a dialog, one of each for a turn (RLEF §2.2).
//!
//! Pure functions on slices whose index is the turn. Nothing here knows what a token is.

use serde::{Deserialize, Serialize};

/// The reward of each turn, the task's part less the price of leaving the reference policy:
///
/// `R(s_t, a_t) = r(s_t, a_t) − β · log(π(a_t|c_t) / ρ(a_t|c_t))`
///
/// where the probability of an answer is the geometric mean of its tokens' probabilities, so that the second
/// term is the mean over the answer's tokens of the log-ratio, `log_ratio`, and long answers pay no more than
/// short ones.
pub fn turn_rewards(task: &[f32], log_ratio: &[f32], beta: f32) -> Vec<f32> {
    task.iter()
        .zip(log_ratio)
        .map(|(r, k)| r - beta * k)
        .collect()
}

/// The discounted sum of the rewards from each turn to the last: `G_t = R_t + γ · G_{t+1}`. RLEF has γ = 1.
pub fn returns(rewards: &[f32], gamma: f32) -> Vec<f32> {
    let mut out = vec![0.0; rewards.len()];
    let mut next = 0.0;
    for t in (0..rewards.len()).rev() {
        next = rewards[t] + gamma * next;
        out[t] = next;
    }
    out
}

/// `A_t = G_t − V(c_t)`: a Monte-Carlo return against the value of the state in which the turn is answered. All
/// tokens of the answer share it.
pub fn advantages(returns: &[f32], values: &[f32]) -> Vec<f32> {
    returns.iter().zip(values).map(|(g, v)| g - v).collect()
}

/// Generalised advantage estimation (arXiv 1506.02438) over the steps of an episode:
///
/// `δ_t = R_t + γ·V_{t+1} − V_t`, `A_t = δ_t + γλ·A_{t+1}`, and `G_t = A_t + V_t` is what the value learns.
///
/// After the last step there is nothing: V = 0 there, and its reward is whole in its δ. Steps are answers or answer
/// tokens; what the environment says between them is no step, so that neither γ nor λ counts it. With λ = 1 the
/// advantage is the Monte-Carlo return less the value.
pub fn gae(rewards: &[f32], values: &[f32], gamma: f32, lambda: f32) -> (Vec<f32>, Vec<f32>) {
    if lambda == 1.0 {
        let returns = returns(rewards, gamma);
        let advantages = advantages(&returns, values);
        return (returns, advantages);
    }
    let n = rewards.len().min(values.len());
    let mut all = vec![0.0; n];
    let (mut next_value, mut next_advantage) = (0.0, 0.0);
    for t in (0..n).rev() {
        let delta = rewards[t] + gamma * next_value - values[t];
        next_advantage = delta + gamma * lambda * next_advantage;
        next_value = values[t];
        all[t] = next_advantage;
    }
    let returns = all.iter().zip(values).map(|(a, v)| a + v).collect();
    (returns, all)
}

/// Puts the reward of each turn on the last token of its answer, for values on tokens. An answer without tokens has no
/// place for it: then it goes to the last token before, or to the first one after, but it is never lost. `lengths` has the
/// number of tokens of each answer.
pub fn rewards_on_tokens(rewards: &[f32], lengths: &[usize]) -> Vec<f32> {
    let mut out = vec![0.0; lengths.iter().sum()];
    let mut end = 0;
    for (reward, n) in rewards.iter().zip(lengths) {
        end += n;
        let at = end.saturating_sub(1);
        if let Some(x) = out.get_mut(at) {
            *x += reward;
        }
    }
    out
}

/// Over what advantages are normalised. The paper says "normalised" but not over what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalise {
    /// Left as they are.
    None,
    /// Mean 0 and standard deviation 1 over the turns of an iteration.
    Turns,
    /// The same over the answer tokens of an iteration: over what the loss is a mean of, so that it pushes the
    /// likelihood of what was sampled neither up nor down as a whole. Long answers count more.
    #[default]
    Tokens,
    /// Over the rollouts of one problem. With a value: mean 0 and standard deviation 1 over the group's answer tokens;
    /// with a group's own baseline: divided by the standard deviation of its rewards, as GRPO has it.
    Group,
}

/// Brings the weighted mean to 0 and the weighted (population) standard deviation to 1. `weights` are 1 for each
/// turn, or the length of its answer. Fewer than two advantages, or equal ones, carry nothing to learn from and
/// become 0.
pub fn normalise(all: &mut [f32], weights: &[f32]) {
    let total: f64 = weights
        .iter()
        .map(|&w| f64::from(w))
        .sum::<f64>()
        .max(1e-12);
    let weighted = |f: &dyn Fn(f64) -> f64, all: &[f32]| {
        all.iter()
            .zip(weights)
            .map(|(&a, &w)| f64::from(w) * f(f64::from(a)))
            .sum::<f64>()
            / total
    };
    let mean = weighted(&|a| a, all);
    let std = weighted(&|a| (a - mean).powi(2), all).sqrt();
    for a in all {
        *a = if std > 1e-8 {
            ((f64::from(*a) - mean) / std) as f32
        } else {
            0.0
        };
    }
}

/// How much of the returns' variance the values explain: `1 − Var(G − V) / Var(G)`; 0 when the returns are equal.
pub fn explained_variance(returns: &[f32], values: &[f32]) -> f32 {
    let variance = |xs: &[f32]| {
        let n = xs.len().max(1) as f32;
        let mean = xs.iter().sum::<f32>() / n;
        xs.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n
    };
    let total = variance(returns);
    if total > 1e-12 {
        1.0 - variance(&advantages(returns, values)) / total
    } else {
        0.0
    }
}

#[cfg(test)]
pub(crate) fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-5, "{got:?} is not {want:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three tokens, the reward 1 on the last; values 0.2, 0.4, 0.6; γ = 0.9, λ = 0.5.
    ///
    /// δ: 0 + 0.9·0.4 − 0.2 = 0.16;  0 + 0.9·0.6 − 0.4 = 0.14;  1 − 0.6 = 0.4
    /// A: 0.4;  0.14 + 0.45·0.4 = 0.32;  0.16 + 0.45·0.32 = 0.304
    /// G = A + V: 0.504, 0.72, 1.0
    #[test]
    fn gae_by_hand() {
        let rewards = rewards_on_tokens(&[1.0], &[3]);
        close(&rewards, &[0.0, 0.0, 1.0]);
        let (g, a) = gae(&rewards, &[0.2, 0.4, 0.6], 0.9, 0.5);
        close(&a, &[0.304, 0.32, 0.4]);
        close(&g, &[0.504, 0.72, 1.0]);
        // λ = 0: the one-step errors; λ = 1: the return less the value.
        let (_, a) = gae(&rewards, &[0.2, 0.4, 0.6], 0.9, 0.0);
        close(&a, &[0.16, 0.14, 0.4]);
        let (g, a) = gae(&rewards, &[0.2, 0.4, 0.6], 0.9, 1.0);
        close(&g, &[0.81, 0.9, 1.0]);
        close(&a, &[0.61, 0.5, 0.4]);
        assert_eq!(gae(&[], &[], 0.9, 0.5), (vec![], vec![]));
    }

    /// Answers of 2, 0 and 1 tokens: the reward of the empty one goes to the token before it. An empty first answer: to
    /// the first token there is.
    #[test]
    fn no_reward_is_lost_on_an_empty_answer() {
        let placed = rewards_on_tokens(&[-0.2, 0.5, 1.0], &[2, 0, 1]);
        close(&placed, &[0.0, 0.3, 1.0]);
        close(&rewards_on_tokens(&[-0.2, 1.0], &[0, 2]), &[-0.2, 1.0]);
        close(&rewards_on_tokens(&[1.0, -1.0], &[2, 0]), &[0.0, 0.0]);
        assert!(rewards_on_tokens(&[1.0], &[0]).is_empty());
    }

    proptest! {
        /// Whatever the lengths, the rewards add up to the same; and as λ nears 1, GAE nears the Monte-Carlo advantage.
        #[test]
        fn the_terminal_reward_reaches_every_token(
            turns in prop::collection::vec((0usize..6, -1.0f32..1.0), 1..5),
            gamma in 0.5f32..1.0,
        ) {
            let lengths: Vec<usize> = turns.iter().map(|t| t.0).collect();
            let rewards: Vec<f32> = turns.iter().map(|t| t.1).collect();
            let placed = rewards_on_tokens(&rewards, &lengths);
            prop_assume!(!placed.is_empty());
            prop_assert!((placed.iter().sum::<f32>() - rewards.iter().sum::<f32>()).abs() < 1e-4);
            let values: Vec<f32> = (0..placed.len()).map(|i| (i as f32 * 0.7).sin()).collect();
            let (_, exact) = gae(&placed, &values, gamma, 1.0);
            let (_, near) = gae(&placed, &values, gamma, 1.0 - 1e-6);
            for (a, b) in exact.iter().zip(near) {
                prop_assert!((a - b).abs() < 1e-3);
            }
        }
    }

    /// A dialog of three turns: no valid code, a wrong answer, solved. β = 0.05.
    ///
    /// rewards: −0.2 − 0.05·0.4 = −0.22;  0 − 0.05·(−0.2) = 0.01;  1 − 0.05·1.0 = 0.95
    /// returns: 0.95;  0.01 + 0.95 = 0.96;  −0.22 + 0.96 = 0.74
    /// advantages with values 0.1, 0.5, 0.9: 0.64, 0.46, 0.05
    #[test]
    fn worked_by_hand() {
        let rewards = turn_rewards(&[-0.2, 0.0, 1.0], &[0.4, -0.2, 1.0], 0.05);
        close(&rewards, &[-0.22, 0.01, 0.95]);
        let g = returns(&rewards, 1.0);
        close(&g, &[0.74, 0.96, 0.95]);
        close(&advantages(&g, &[0.1, 0.5, 0.9]), &[0.64, 0.46, 0.05]);
        // γ = 0.5: 0.95;  0.01 + 0.475 = 0.485;  −0.22 + 0.2425 = 0.0225
        close(&returns(&rewards, 0.5), &[0.0225, 0.485, 0.95]);
    }

    /// 1, 2, 3, 6: mean 3, variance (4 + 1 + 0 + 9)/4 = 3.5, standard deviation 1.870829.
    /// Weights 3, 1 on 0, 4: mean 1, variance (3·1 + 1·9)/4 = 3, standard deviation 1.732051.
    #[test]
    fn normalised_by_hand() {
        let mut a = [1.0, 2.0, 3.0, 6.0];
        normalise(&mut a, &[1.0; 4]);
        close(&a, &[-1.069_045, -0.534_522, 0.0, 1.603_567]);
        let mut b = [0.0, 4.0];
        normalise(&mut b, &[3.0, 1.0]);
        close(&b, &[-0.577_350, 1.732_051]);
        let mut equal = [0.3; 5];
        normalise(&mut equal, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        close(&equal, &[0.0; 5]);
        let mut one = [7.0];
        normalise(&mut one, &[2.0]);
        close(&one, &[0.0]);
        normalise(&mut [], &[]);
    }

    /// returns 0, 2 have variance 1; with values 0, 1 what is left is 0, 1 with variance 1/4.
    #[test]
    fn explained_by_hand() {
        close(&[explained_variance(&[0.0, 2.0], &[0.0, 1.0])], &[0.75]);
        close(&[explained_variance(&[1.0, 1.0], &[0.0, 1.0])], &[0.0]);
    }
}
