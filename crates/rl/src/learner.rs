//! The networks that learn and one update of them.
//!
//! A minibatch is cut into shards, one a thread; each thread has a copy of the weights with a gradient graph of its
//! own; the gradients are added in shard order, so that the sum does not depend on which thread was first.

use burn::module::{AutodiffModule, Module, Param, ParamId};
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn::tensor::{Bytes, Device, Tensor};
use rlef_model::weights::Named;
use rlef_model::{Frame, Llama, ModelError, ValueHead, ValueModel, ops, weights};

use crate::batch::{Packed, Sample, balance};
use crate::config::{Optimiser, ValueKind};
use crate::gradients::Merge;
use crate::objective::{LossSettings, Tokens, token_loss};
use crate::off_policy::{self, OffPolicy};
use crate::ppo::value_terms;
use crate::sft::LossOn;

/// How networks are evaluated.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// Logits are divided by it.
    pub temperature: f32,
    /// Whether gradients of the value reach the policy's own network.
    pub value_moves_policy: bool,
}

/// Policy and value network.
#[derive(Module, Debug)]
pub struct ActorCritic {
    /// The policy.
    pub policy: Llama,
    /// The value on the policy's own stream …
    pub head: Option<ValueHead>,
    /// … or from a network of its own.
    pub critic: Option<ValueModel>,
}

impl ActorCritic {
    /// Both networks start from `policy`'s weights; the value layer is random.
    pub fn new(policy: Llama, value: ValueKind, frame: &Frame, seed: u64, device: &Device) -> Self {
        let head = ValueHead::random(&frame.config, seed, device);
        match value {
            ValueKind::Head => Self {
                policy,
                head: Some(head),
                critic: None,
            },
            ValueKind::Separate => {
                let trunk = policy.clone();
                Self {
                    policy,
                    head: None,
                    critic: Some(ValueModel {
                        trunk: renamed(trunk),
                        head,
                    }),
                }
            }
        }
    }

    /// The value network's tensors by name; empty without one.
    pub fn value_to_named(&self) -> Result<Named, ModelError> {
        let mut value = Named::new();
        if let Some(head) = &self.head {
            value.extend(head.to_named()?);
        }
        if let Some(critic) = &self.critic {
            value.extend(critic.head.to_named()?);
            value.extend(critic.trunk.to_named()?);
        }
        Ok(value)
    }

    /// Log-probability and entropy of each target token, value of each state.
    pub fn evaluate(&self, packed: &Packed, frame: &Frame, how: How) -> Evaluated {
        let hidden_btd = self.policy.hidden(packed.tokens_bt.clone(), frame);
        let [b, t, d] = hidden_btd.dims();
        let hidden_pd = hidden_btd.reshape([b * t, d]);
        let value_m = match (&self.head, &self.critic) {
            (Some(head), _) => {
                let state_md = hidden_pd.clone().select(0, packed.state_m.clone());
                Some(head.forward(if how.value_moves_policy {
                    state_md
                } else {
                    state_md.detach()
                }))
            }
            (None, Some(critic)) => {
                Some(critic.forward(packed.tokens_bt.clone(), packed.state_m.clone(), frame))
            }
            (None, None) => None,
        };
        let mut logits_nv = self
            .policy
            .logits(hidden_pd.select(0, packed.predict_n.clone()));
        if how.temperature != 1.0 && how.temperature > 0.0 {
            logits_nv = logits_nv.div_scalar(how.temperature);
        }
        let (logprob_n, entropy_n) = ops::pick_logprobs(logits_nv, packed.target_n.clone());
        Evaluated {
            logprob_n,
            entropy_n,
            value_m,
        }
    }
}

/// The same weights under new parameter identities: a copy that is to be optimised by itself must not share them.
fn renamed(model: Llama) -> Llama {
    struct Rename;
    impl burn::module::ModuleMapper for Rename {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let value = param.val();
            Param::from_tensor(value)
        }
    }
    model.map(&mut Rename)
}

/// The same weights with identities that depend on their place alone, so that what the optimiser knows of a weight finds
/// it again in another process. The networks' ranges do not overlap.
fn numbered(model: ActorCritic) -> ActorCritic {
    struct Number(u64);
    impl burn::module::ModuleMapper for Number {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            let (_, tensor, mapper) = param.consume();
            Param::from_mapped_value(ParamId::from(self.0), tensor, mapper)
        }
    }
    ActorCritic {
        policy: model.policy.map(&mut Number(0)),
        head: model.head.map(|head| head.map(&mut Number(1 << 40))),
        critic: model.critic.map(|critic| critic.map(&mut Number(1 << 41))),
    }
}

/// The same weights on the device with gradients, every one of them to be learned: weights that were read without
/// gradients do not ask for any.
fn trainable(model: ActorCritic) -> ActorCritic {
    struct Ask;
    impl burn::module::ModuleMapper for Ask {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.set_require_grad(true)
        }
    }
    ActorCritic::from_inner(model).map(&mut Ask)
}

/// What [`ActorCritic::evaluate`] gives.
pub struct Evaluated {
    /// `[n]`.
    pub logprob_n: Tensor<1>,
    /// `[n]`.
    pub entropy_n: Tensor<1>,
    /// `[m]`; `None` without value network.
    pub value_m: Option<Tensor<1>>,
}

/// What an update did, averages over its tokens or turns.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpdateStats {
    /// Surrogate loss.
    pub policy_loss: f64,
    /// Value loss.
    pub value_loss: f64,
    /// Share of tokens where the clip decided.
    pub clip_fraction: f64,
    /// Estimated KL from the weights at the start.
    pub kl: f64,
    /// Estimated KL from the reference policy, if it is paid for in the loss.
    pub reference_kl: f64,
    /// Share of answer tokens that the loss did not count.
    pub masked: f64,
    /// Updates between the weights that sampled a token and those that learned from it: the mean …
    pub staleness: f64,
    /// … and the largest.
    pub stalest: u64,
    /// Entropy of the token distribution, in nats.
    pub entropy: f64,
    /// Norm of the gradient before clipping.
    pub grad_norm: f64,
}

/// Networks, optimiser and the threads' share.
pub struct Learner {
    model: ActorCritic,
    frame: Frame,
    inference_frame: Frame,
    device: Device,
    optimiser: ModuleOptimizer,
    settings: Optimiser,
    updates: u64,
    shards: usize,
    lr_scale: f64,
}

/// One shard's part: gradients and sums.
struct Part {
    grads: GradientsParams,
    sums: [f64; 6],
}

impl Learner {
    /// `policy` on a device without autodiff. `value` is absent for supervised training.
    pub fn new(
        policy: Llama,
        value: Option<ValueKind>,
        config: &rlef_model::LlamaConfig,
        settings: &Optimiser,
        shards: usize,
        seed: u64,
    ) -> Self {
        let plain = policy.embed_tokens.val().device();
        let device = plain.clone().autodiff();
        let inference_frame = Frame::new(config, &plain);
        let model = match value {
            Some(kind) => ActorCritic::new(policy, kind, &inference_frame, seed, &plain),
            None => ActorCritic {
                policy,
                head: None,
                critic: None,
            },
        };
        Self {
            model: trainable(numbered(model)),
            frame: Frame::new(config, &device),
            inference_frame,
            device,
            optimiser: adamw(settings),
            settings: settings.clone(),
            updates: 0,
            shards: shards.max(1),
            lr_scale: 1.0,
        }
    }

    /// The weights without gradients, for sampling and scoring.
    pub fn inference(&self) -> ActorCritic {
        self.model.valid()
    }

    /// Goes back to weights that [`Learner::inference`] gave. The optimiser's averages stay: this is for ending with
    /// those weights, not for going on from them.
    pub fn restore(&mut self, weights: ActorCritic) {
        self.model = trainable(weights);
    }

    /// What the optimiser knows, as bytes that [`Learner::resume`] takes.
    ///
    /// # Errors
    /// What cannot be brought to the host.
    pub fn optimiser_state(&self) -> Result<Vec<u8>, ModelError> {
        let bytes = self.optimiser.to_record().into_bytes();
        bytes
            .map(|b| b.to_vec())
            .map_err(|e| ModelError::Compute(format!("the optimiser's state: {e}")))
    }

    /// Goes on from these weights (on the device without gradients), as if the updates that led to them had been made
    /// here. `optimiser` is what [`Learner::optimiser_state`] gave.
    ///
    /// # Errors
    /// Bytes that are no such state.
    pub fn resume(
        &mut self,
        weights: ActorCritic,
        optimiser: Vec<u8>,
        updates: u64,
    ) -> Result<(), ModelError> {
        let record = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(optimiser))
            .map_err(|e| ModelError::Compute(format!("the optimiser's state: {e}")))?;
        self.optimiser = adamw(&self.settings).load_record(record);
        self.model = trainable(numbered(weights));
        self.updates = updates;
        Ok(())
    }

    /// Tables on the device without gradients.
    pub fn inference_frame(&self) -> &Frame {
        &self.inference_frame
    }

    /// Updates so far: the version of the weights.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Multiplies the learning rate from the next update on, for schedules.
    pub fn scale_lr(&mut self, factor: f64) {
        self.lr_scale = factor;
    }

    /// The learning rate of the next update: linear warm-up, then constant, times the schedule's factor.
    pub fn learning_rate(&self) -> f64 {
        let warm = self.settings.warmup_updates as f64;
        self.lr_scale * self.settings.lr * ((self.updates + 1) as f64 / warm.max(1.0)).min(1.0)
    }

    /// One update on a minibatch.
    pub fn ppo(
        &mut self,
        batch: &[&Sample],
        loss: LossSettings,
    ) -> Result<UpdateStats, ModelError> {
        let updates = self.updates;
        let count = |s: &Sample| s.counted(updates, loss.max_staleness);
        let counted: Vec<Vec<bool>> = batch.iter().map(|s| count(s)).collect();
        let ones = |x: &[bool]| x.iter().filter(|&&c| c).count();
        let lengths: Vec<usize> = counted.iter().map(|c| ones(c)).collect();
        let steps: usize = batch
            .iter()
            .zip(&counted)
            .map(|(s, c)| ones(&s.counted_steps(c)))
            .sum();
        let tokens: usize = batch.iter().map(|s| s.answer_tokens()).sum();
        let (n_all, m_all) = (tokens.max(1) as f64, steps.max(1) as f64);
        let divisor = loss.aggregation.divisor(&lengths, loss.constant);
        let parts = self.sharded(batch, |model, frame, samples, device| {
            let packed = Packed::new(samples, |s| s.answers.clone(), device);
            let tensor = |x: &[f32]| Tensor::<1>::from_data(x, device);
            let list = |f: &dyn Fn(&Sample) -> Vec<f32>| -> Vec<f32> {
                samples.iter().flat_map(|s| f(s)).collect()
            };
            // Multiplying by 1 changes no bit, but takes time.
            let unless_1 = |x: Vec<f32>| x.iter().any(|&w| w != 1.0).then(|| tensor(&x));
            let weights = list(&|s| {
                let counted = count(s);
                let weight = loss.aggregation.weight(ones(&counted));
                let one = |c| if c { weight } else { 0.0 };
                counted.into_iter().map(one).collect()
            });
            let correction_n = (loss.off_policy == OffPolicy::Truncated).then(|| {
                tensor(&list(&|s| {
                    let pairs = s.old.iter().zip(&s.behaviour);
                    pairs
                        .map(|(&old, &b)| off_policy::truncated(old, b, loss.off_policy_cap))
                        .collect()
                }))
            });
            let out = model.evaluate(&packed, frame, loss.how);
            let known = Tokens {
                old_n: tensor(&list(&|s| s.old.clone())),
                behaviour_n: tensor(&list(&|s| s.behaviour.clone())),
                reference_n: tensor(&list(&|s| s.reference.clone())),
                advantage_n: tensor(&list(&|s| s.token_advantages())),
                correction_n,
                weight_n: unless_1(weights),
            };
            let (terms, reference_kl_n) = token_loss(out.logprob_n, known, &loss);
            let policy_sum = terms.loss_n.sum();
            let mut total = policy_sum.clone().div_scalar(divisor);
            let value_sum = out.value_m.map(|value_m| {
                let mut loss_m = value_terms(
                    value_m,
                    tensor(&list(&|s| s.values.clone())),
                    tensor(&list(&|s| s.returns.clone())),
                    loss.clips.value,
                );
                let one = |c| if c { 1.0 } else { 0.0 };
                let steps = |s: &Sample| s.counted_steps(&count(s)).into_iter().map(one).collect();
                if let Some(weight_m) = unless_1(list(&steps)) {
                    loss_m = loss_m * weight_m;
                }
                loss_m.sum()
            });
            if let Some(v) = &value_sum {
                total = total + v.clone().mul_scalar(f64::from(loss.value_weight) / m_all);
            }
            let grads = GradientsParams::from_grads(total.backward(), model);
            Ok(Part {
                grads,
                sums: [
                    number(policy_sum)?,
                    value_sum.map_or(Ok(0.0), number)?,
                    number(terms.clipped_n.sum())?,
                    number(terms.kl_n.sum())?,
                    number(out.entropy_n.sum())?,
                    reference_kl_n.map_or(Ok(0.0), |kl_n| number(kl_n.sum()))?,
                ],
            })
        })?;
        let mut sums = [0.0; 6];
        for part in &parts {
            for (a, b) in sums.iter_mut().zip(part.sums) {
                *a += b;
            }
        }
        let ages = || {
            let versions = batch.iter().flat_map(|s| &s.versions);
            versions.map(|&v| off_policy::staleness(updates, v))
        };
        let grad_norm = self.apply(parts)?;
        Ok(UpdateStats {
            policy_loss: sums[0] / divisor,
            value_loss: sums[1] / m_all,
            clip_fraction: sums[2] / n_all,
            kl: sums[3] / n_all,
            entropy: sums[4] / n_all,
            reference_kl: sums[5] / n_all,
            masked: 1.0 - lengths.iter().sum::<usize>() as f64 / n_all,
            staleness: ages().sum::<u64>() as f64 / n_all,
            stalest: ages().max().unwrap_or(0),
            grad_norm,
        })
    }

    /// One supervised update: mean negative log-likelihood of the tokens that `on` names. Returns that mean and the
    /// gradient norm.
    pub fn supervised(&mut self, batch: &[&Sample], on: LossOn) -> Result<(f64, f64), ModelError> {
        let targets = move |s: &Sample| match on {
            LossOn::All => std::iter::once(1..s.tokens.len()).collect(),
            LossOn::Answers => s.answers.clone(),
            LossOn::LastAnswer => s.answers.last().cloned().into_iter().collect(),
        };
        let n_all: usize = batch.iter().flat_map(|s| targets(s)).map(|r| r.len()).sum();
        let parts = self.sharded(batch, |model, frame, samples, device| {
            let packed = Packed::new(samples, targets, device);
            let how = How {
                temperature: 1.0,
                value_moves_policy: false,
            };
            let loss = model.evaluate(&packed, frame, how).logprob_n.sum().neg();
            let grads = GradientsParams::from_grads(
                loss.clone().div_scalar(n_all.max(1) as f64).backward(),
                model,
            );
            Ok(Part {
                grads,
                sums: [number(loss)?, 0.0, 0.0, 0.0, 0.0, 0.0],
            })
        })?;
        let loss = parts.iter().map(|p| p.sums[0]).sum::<f64>() / n_all.max(1) as f64;
        Ok((loss, self.apply(parts)?))
    }

    /// Runs `f` on each shard of `batch`, a thread each; parts in shard order.
    fn sharded(
        &self,
        batch: &[&Sample],
        f: impl Fn(&ActorCritic, &Frame, &[&Sample], &Device) -> Result<Part, ModelError> + Sync,
    ) -> Result<Vec<Part>, ModelError> {
        let lengths: Vec<usize> = batch.iter().map(|s| s.tokens.len()).collect();
        let groups: Vec<Vec<&Sample>> = balance(&lengths, self.shards)
            .into_iter()
            .filter(|g| !g.is_empty())
            .map(|g| g.into_iter().map(|i| batch[i]).collect())
            .collect();
        let run = |samples: &[&Sample]| {
            let model = self.model.clone().fork(&self.device);
            f(&model, &self.frame, samples, &self.device)
        };
        std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = groups
                .iter()
                .skip(1)
                .map(|g| scope.spawn(move || run(g.as_slice())))
                .collect();
            let mut parts = Vec::new();
            if let Some(first) = groups.first() {
                parts.push(run(first.as_slice())?);
            }
            for thread in threads {
                let part = thread
                    .join()
                    .map_err(|_| ModelError::Compute("a training thread died".into()))?;
                parts.push(part?);
            }
            Ok(parts)
        })
    }

    /// Adds the parts' gradients, bounds their norm, and takes an AdamW step. Returns the norm of the policy's gradient
    /// before it was bounded.
    fn apply(&mut self, parts: Vec<Part>) -> Result<f64, ModelError> {
        let mut grads = Merge::new(parts.into_iter().map(|p| p.grads).collect());
        let bound = f64::from(self.settings.grad_clip);
        let wrong = |why: String| ModelError::Compute(format!("update {}: {why}", self.updates));
        let norm = grads.add(&self.model.policy, bound).map_err(wrong)?;
        // The value's gradient is bounded by itself: while its layer finds the level of the returns it is many times
        // the policy's, and a common bound would first starve the policy and then let it leap.
        if let Some(head) = &self.model.head {
            grads.add(head, bound).map_err(wrong)?;
        }
        if let Some(critic) = &self.model.critic {
            grads.add(critic, bound).map_err(wrong)?;
        }
        let lr = self.learning_rate();
        self.model = self.optimiser.step(lr, self.model.clone(), grads.finish());
        self.updates += 1;
        Ok(norm)
    }
}

fn adamw(settings: &Optimiser) -> ModuleOptimizer {
    AdamWConfig::new()
        .with_beta_1(settings.beta_1)
        .with_beta_2(settings.beta_2)
        .with_epsilon(settings.epsilon)
        .with_weight_decay(settings.weight_decay)
        .init()
}

fn number(t: Tensor<1>) -> Result<f64, ModelError> {
    Ok(weights::values(t)?.first().map_or(0.0, |&x| f64::from(x)))
}
