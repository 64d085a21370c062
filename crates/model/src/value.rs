//! The learned value: one number for the state in which a turn is answered.
//!
//! Read at the last token of the turn's prompt (RLEF A.1): a linear layer on the stream after the final norm,
//! either of the policy itself or of a network of its own that starts from the same weights.

use std::path::Path;

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::ModelError;
use crate::config::LlamaConfig;
use crate::llama::{Frame, Llama, normal};
use crate::weights::{self, Named};

/// The linear layer.
#[derive(Module, Debug)]
pub struct ValueHead {
    /// `value_head.weight`, `[d, 1]`.
    pub weight: Param<Tensor<2>>,
    /// `value_head.bias`, `[1]`.
    pub bias: Param<Tensor<1>>,
}

impl ValueHead {
    /// Random weights with standard deviation 1/√d·0.1: first values are near zero, so the first advantages are
    /// the returns.
    pub fn random(config: &LlamaConfig, seed: u64, device: &Device) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let d = config.hidden_size;
        let std = 0.1 / (d as f64).sqrt();
        let w: Vec<f32> = (0..d).map(|_| (normal(&mut rng) * std) as f32).collect();
        Self {
            weight: Param::from_tensor(Tensor::from_data(TensorData::new(w, [d, 1]), device)),
            bias: Param::from_tensor(Tensor::zeros([1], device)),
        }
    }

    /// Values `[n]` of the states whose stream `[n, d]` is given.
    pub fn forward(&self, hidden_nd: Tensor<2>) -> Tensor<1> {
        let n = hidden_nd.dims()[0];
        (hidden_nd.matmul(self.weight.val()) + self.bias.val().unsqueeze()).reshape([n])
    }

    /// The tensors by name.
    pub fn to_named(&self) -> Result<Named, ModelError> {
        let d = self.weight.val().dims()[0];
        Ok([
            (
                "value_head.weight".to_owned(),
                (vec![1, d], weights::values(self.weight.val())?),
            ),
            (
                "value_head.bias".to_owned(),
                (vec![1], weights::values(self.bias.val())?),
            ),
        ]
        .into())
    }

    /// Takes `value_head.*` out of `named`.
    pub fn from_named(named: &mut Named, path: &Path, device: &Device) -> Result<Self, ModelError> {
        let mut take = |name: &str| {
            named
                .remove(name)
                .map(|(_, v)| v)
                .ok_or_else(|| ModelError::Weights {
                    path: path.to_owned(),
                    tensor: name.into(),
                    why: "missing".into(),
                })
        };
        let (w, b) = (take("value_head.weight")?, take("value_head.bias")?);
        let d = w.len();
        Ok(Self {
            weight: Param::from_tensor(Tensor::from_data(TensorData::new(w, [d, 1]), device)),
            bias: Param::from_tensor(Tensor::from_data(TensorData::new(b, [1]), device)),
        })
    }
}

/// A value network of its own: a whole model with the linear layer on top.
#[derive(Module, Debug)]
pub struct ValueModel {
    /// The trunk.
    pub trunk: Llama,
    /// The layer.
    pub head: ValueHead,
}

impl ValueModel {
    /// Values `[n]` at flat positions `index_n` (row · t + position) of `tokens_bt`.
    pub fn forward(
        &self,
        tokens_bt: Tensor<2, Int>,
        index_n: Tensor<1, Int>,
        frame: &Frame,
    ) -> Tensor<1> {
        let hidden = self.trunk.hidden(tokens_bt, frame);
        let [b, t, d] = hidden.dims();
        self.head
            .forward(hidden.reshape([b * t, d]).select(0, index_n))
    }
}
