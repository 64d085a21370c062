//! The keys and values of the positions already seen, kept across the turns of a dialog.
//!
//! A slot of the cache is not a position: rows of different length are filled at the same slots, with holes that
//! the attention bias hides (keys are rotated before they are stored, so the slot does not matter).

use burn::tensor::{Device, Int, Tensor};

use crate::ops::AttentionShape;

/// Keys and values of every layer, `[b, k, capacity, e]` each.
#[derive(Debug, Clone)]
pub struct Cache {
    layers: Vec<Option<(Tensor<4>, Tensor<4>)>>,
    used: usize,
    capacity: usize,
    rows: usize,
    device: Device,
}

impl Cache {
    /// An empty cache for `rows` dialogs.
    pub fn new(layers: usize, rows: usize, device: &Device) -> Self {
        Self {
            layers: vec![None; layers],
            used: 0,
            capacity: 0,
            rows,
            device: device.clone(),
        }
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Makes room for `more` slots.
    pub fn reserve(&mut self, more: usize, shape: AttentionShape) {
        let need = self.used + more;
        if need <= self.capacity {
            return;
        }
        // Growing copies everything, so grow by at least half.
        let capacity = need.max(self.capacity + self.capacity / 2);
        let dims = [self.rows, shape.kv_heads, capacity, shape.head_size];
        for layer in &mut self.layers {
            let mut fresh = (
                Tensor::zeros(dims, &self.device),
                Tensor::zeros(dims, &self.device),
            );
            if let Some((k, v)) = layer.take()
                && self.used > 0
            {
                let ranges = [0..dims[0], 0..dims[1], 0..self.used, 0..dims[3]];
                fresh.0 = fresh
                    .0
                    .slice_assign(ranges.clone(), k.slice(ranges.clone()));
                fresh.1 = fresh.1.slice_assign(ranges.clone(), v.slice(ranges));
            }
            *layer = Some(fresh);
        }
        self.capacity = capacity;
    }

    /// Stores rotated keys `[b, k, t, e]` and values `[b, t, k·e]` after the used slots of `layer`; returns all
    /// of them, `[b, k, s, e]`. The slots count as used only after [`Cache::advance`].
    pub(crate) fn append(
        &mut self,
        layer: usize,
        k_bkte: Tensor<4>,
        v: Tensor<3>,
        shape: AttentionShape,
    ) -> (Tensor<4>, Tensor<4>) {
        let [b, kv, t, e] = k_bkte.dims();
        self.reserve(t, shape);
        let v_bkte = v.reshape([b, t, kv, e]).swap_dims(1, 2);
        let (k, v) = self.layers[layer]
            .take()
            .expect("reserve fills every layer");
        let new = [0..b, 0..kv, self.used..self.used + t, 0..e];
        let k = k.slice_assign(new.clone(), k_bkte);
        let v = v.slice_assign(new, v_bkte);
        let all = [0..b, 0..kv, 0..self.used + t, 0..e];
        let views = (k.clone().slice(all.clone()), v.clone().slice(all));
        self.layers[layer] = Some((k, v));
        views
    }

    pub(crate) fn advance(&mut self, t: usize) {
        self.used += t;
    }

    /// Keeps the given rows, in the given order, and lets go of the others.
    pub fn keep(&mut self, rows: &[usize]) {
        let index: Vec<i32> = rows.iter().map(|&r| r as i32).collect();
        let index = Tensor::<1, Int>::from_data(index.as_slice(), &self.device);
        for (k, v) in self.layers.iter_mut().flatten() {
            *k = k.clone().select(0, index.clone());
            *v = v.clone().select(0, index.clone());
        }
        self.rows = rows.len();
    }
}
