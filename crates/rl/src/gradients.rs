//! The gradients of several shards, added and bounded.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use rlef_model::weights;

/// Adds shards' gradients network by network.
pub struct Merge {
    parts: Vec<GradientsParams>,
    out: GradientsParams,
}

impl Merge {
    /// The shards, in the order in which they are added.
    pub fn new(parts: Vec<GradientsParams>) -> Self {
        Self {
            parts,
            out: GradientsParams::new(),
        }
    }

    /// Takes the gradients of `network`, adds them over the shards, and scales them down to the norm `bound` if it is
    /// over 0 and they exceed it. Returns the norm before.
    ///
    /// # Errors
    /// A weight without gradient, or a gradient that is not finite.
    pub fn add<M: Module>(&mut self, network: &M, bound: f64) -> Result<f64, String> {
        let mut sum = Sum {
            parts: &mut self.parts,
            out: &mut self.out,
            squares: vec![],
            missing: false,
        };
        network.visit(&mut sum);
        if sum.missing {
            return Err("a weight got no gradient".into());
        }
        let mut square = 0.0;
        for t in sum.squares {
            square += weights::values(t)
                .map_err(|e| e.to_string())?
                .iter()
                .map(|&x| f64::from(x))
                .sum::<f64>();
        }
        let norm = square.sqrt();
        if !norm.is_finite() {
            return Err("the gradient is not finite; lower the learning rate".into());
        }
        if bound > 0.0 && norm > bound {
            network.visit(&mut Scale {
                grads: &mut self.out,
                factor: bound / norm,
            });
        }
        Ok(norm)
    }

    /// All networks' gradients.
    pub fn finish(self) -> GradientsParams {
        self.out
    }
}

struct Sum<'a> {
    parts: &'a mut [GradientsParams],
    out: &'a mut GradientsParams,
    squares: Vec<Tensor<1>>,
    missing: bool,
}

impl ModuleVisitor for Sum<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let all = self
            .parts
            .iter_mut()
            .filter_map(|p| p.remove::<D>(param.id));
        match all.reduce(|a, b| a + b) {
            Some(total) => {
                self.squares.push(total.clone().square().sum());
                self.out.register::<D>(param.id, total);
            }
            None => self.missing = true,
        }
    }
}

struct Scale<'a> {
    grads: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(g) = self.grads.remove::<D>(param.id) {
            self.grads
                .register::<D>(param.id, g.mul_scalar(self.factor));
        }
    }
}
