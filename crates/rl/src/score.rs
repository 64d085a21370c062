//! Log-probabilities and values of recorded dialogs under given weights, without gradients.

use rlef_model::{Frame, ModelError, weights};

use crate::batch::{Packed, Sample, balance};
use crate::learner::{ActorCritic, How};

/// What a network says of a dialog: one log-probability an answer token, one value a step (empty without value).
pub type Score = (Vec<f32>, Vec<f32>);

/// Scores `samples`, in their order, on `workers` threads.
pub fn score(
    model: &ActorCritic,
    frame: &Frame,
    samples: &[Sample],
    temperature: f32,
    workers: usize,
) -> Result<Vec<Score>, ModelError> {
    /// Dialogs side by side: enough to fill the products, few enough that padding is small.
    const GROUP: usize = 32;
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by_key(|&i| (samples[i].tokens.len(), i));
    let groups: Vec<&[usize]> = order.chunks(GROUP).collect();
    let lengths: Vec<usize> = groups
        .iter()
        .map(|g| g.iter().map(|&i| samples[i].tokens.len()).sum())
        .collect();
    let run = |mine: Vec<usize>| -> Result<Vec<(usize, Score)>, ModelError> {
        let device = model.policy.embed_tokens.val().device();
        let mut out = Vec::new();
        for g in mine {
            let part: Vec<&Sample> = groups[g].iter().map(|&i| &samples[i]).collect();
            let packed = Packed::new(&part, |s| s.answers.clone(), &device);
            let evaluated = model.evaluate(
                &packed,
                frame,
                How {
                    temperature,
                    value_moves_policy: false,
                },
            );
            let mut logprobs = weights::values(evaluated.logprob_n)?.into_iter();
            let mut values = match evaluated.value_m {
                Some(v) => weights::values(v)?,
                None => vec![],
            }
            .into_iter();
            for (&i, s) in groups[g].iter().zip(part) {
                let lp = logprobs.by_ref().take(s.answer_tokens()).collect();
                out.push((i, (lp, values.by_ref().take(s.steps.len()).collect())));
            }
        }
        Ok(out)
    };
    let mut scores: Vec<Score> = vec![Default::default(); samples.len()];
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = balance(&lengths, workers)
            .into_iter()
            .map(|mine| scope.spawn(move || run(mine)))
            .collect();
        for thread in threads {
            let part = thread
                .join()
                .map_err(|_| ModelError::Compute("a scoring thread died".into()))??;
            for (i, s) in part {
                scores[i] = s;
            }
        }
        Ok(scores)
    })
}
